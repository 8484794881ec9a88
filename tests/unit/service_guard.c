// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * SIGBUS insurance: here the memory is a file that is cut off, which homad's own
 * seals forbid; the signal is the same as when a page cannot be had.
 */
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "guard.h"

#define PAGE 4096u

static u8 *cut_off(size_t pages)
{
	int fd = memfd_create("guard", MFD_CLOEXEC);
	u8 *base;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(pages * PAGE)), 0);
	base = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	assert_ptr_not_equal(base, MAP_FAILED);
	memset(base, 1, pages * PAGE);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	return base;
}

static void guard__a_fault_costs_only_its_owner(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK), one, two;
	u8 *a = cut_off(3), *b = cut_off(2);
	u32 number_a, number_b;
	eventfd_t count;

	(void)state;
	assert_int_equal(homad_guard_start(fd), 0);
	number_a = homad_guard_add(a, 3 * PAGE, &one);
	number_b = homad_guard_add(b, 2 * PAGE, &two);
	assert_int_not_equal(number_a, 0);
	assert_int_not_equal(number_b, number_a);
	assert_null(homad_guard_next());
	assert_int_equal(*(volatile u8 *)(a + PAGE + 5), 0);
	*(volatile u8 *)(a + 2 * PAGE) = 7;
	assert_int_equal(a[2 * PAGE], 7);
	assert_int_equal(eventfd_read(fd, &count), 0);
	assert_ptr_equal(homad_guard_next(), &one);
	assert_null(homad_guard_next());
	assert_int_equal(b[PAGE], 0);
	assert_ptr_equal(homad_guard_next(), &two);
	homad_guard_remove(number_a);
	homad_guard_remove(number_b);
	munmap(a, 3 * PAGE);
	munmap(b, 2 * PAGE);
	close(fd);
}

static void guard__elsewhere_it_is_as_deadly_as_ever(void **state)
{
	u8 *memory = cut_off(2);
	u32 number;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(homad_guard_start(-1), 0);
	/* No longer guarded, and only half of it was. */
	number = homad_guard_add(memory, PAGE, memory);
	pid = fork();
	if (pid == 0) {
		status = memory[0] + memory[PAGE];
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
	homad_guard_remove(number);
	pid = fork();
	if (pid == 0) {
		status = memory[0];
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	munmap(memory, 2 * PAGE);
}

static void guard__numbers_are_used_again_and_run_out(void **state)
{
	static u32 numbers[70000];
	u32 i, n, middle;

	(void)state;
	for (n = 0; n < HOMA_ARRAY_SIZE(numbers); n++) {
		numbers[n] = homad_guard_add((void *)(uintptr_t)(n * PAGE),
					     PAGE, numbers);
		if (!numbers[n])
			break;
	}
	assert_in_range(n, 60000, 69999);
	middle = numbers[n / 2];
	homad_guard_remove(middle);
	homad_guard_remove(0);
	assert_int_equal(homad_guard_add(NULL, PAGE, numbers), middle);
	assert_int_equal(homad_guard_add(NULL, PAGE, numbers), 0);
	for (i = 0; i < n; i++)
		homad_guard_remove(numbers[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guard__a_fault_costs_only_its_owner),
		cmocka_unit_test(guard__elsewhere_it_is_as_deadly_as_ever),
		cmocka_unit_test(guard__numbers_are_used_again_and_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
