// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// A module that makes one mistake of those that the tests must notice, so that it
// is known that they would: insmod bad.ko mistake=N.

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static int mistake;
module_param(mistake, int, 0444);

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);
static DEFINE_MUTEX(sleeper);

static void overrun(void)
{
	volatile char *memory = kmalloc(16, GFP_KERNEL);

	if (memory)
		memory[16] = 1;
	kfree((void *)memory);
}

static void sleep_in_atomic(void)
{
	spin_lock(&first);
	mutex_lock(&sleeper);
	mutex_unlock(&sleeper);
	spin_unlock(&first);
}

static void lock_backwards(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);
	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

static void leak(void)
{
	int i;

	/* Several, since an old copy of one pointer may lie about. */
	for (i = 0; i < 16; i++) {
		void *memory = kmalloc(1000, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(memory);
	}
}

static int shared;

static int count(void *unused)
{
	while (!kthread_should_stop()) {
		shared++;
		cond_resched();
	}
	return 0;
}

static void race(void)
{
	struct task_struct *one = kthread_run(count, NULL, "bad_one");
	struct task_struct *two = kthread_run(count, NULL, "bad_two");

	msleep(2000);
	if (!IS_ERR(one))
		kthread_stop(one);
	if (!IS_ERR(two))
		kthread_stop(two);
}

static int __init bad_init(void)
{
	switch (mistake) {
	case 1:
		WARN_ON(1);
		break;
	case 2:
		*(volatile int *)8 = 1;
		break;
	case 3:
		overrun();
		break;
	case 4:
		sleep_in_atomic();
		break;
	case 5:
		lock_backwards();
		break;
	case 6:
		leak();
		break;
	case 7:
		race();
		break;
	}
	return 0;
}

static void __exit bad_exit(void)
{
}

module_init(bad_init);
module_exit(bad_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("makes mistakes");
