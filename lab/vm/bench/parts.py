# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a kernel function is part of, by its name: for sums that people can read.

The first pattern that matches counts. A table of names can never be complete: what no
pattern knows is "other", and if that grows large the table wants another line.
"""

from __future__ import annotations

import functools
import re

from lab.vm.bench.symbols import Function

_PARTS = (
    (
        "TCP",
        r"tcp_|_tcp|inet_csk|bictcp|cubic|inet_ehash|sk_reset_timer|sk_stream|sk_forced|minmax"
        r"|__inet_lookup|inet6?_lookup|bpf_skops|bbr",
    ),
    ("UDP", r"udp"),
    (
        "copies",
        r"copy_(user|to_|from_|page)|_copy_|csum_partial|rep_movs|memcpy|check_object_size"
        r"|__check_heap_object|usercopy|_iter_|iov_iter|import_(iovec|single)|csum_and_copy"
        r"|skb_copy_datagram|simple_copy|memset|__virt_addr_valid|clear_user|skb_copy_bits|put_cmsg"
        r"|move_addr",
    ),
    (
        "skb and slab",
        r"skb_(?!dst|flow)|__?alloc_skb|kfree_skb|consume_skb|kmem_cache|kmalloc"
        r"|kfree|slab|page_frag|__napi_alloc|napi_skb|ksize|slub|deactivate_|__free_pages|get_page_from"
        r"|__alloc_pages|napi_consume|obj_cgroup|memcg_slab|refill_obj|free_unref|prep_new_page"
        r"|sock_(wfree|rfree|efree)|sock_(w|r)malloc|sock_alloc_send|validate_xmit|put_cpu_partial"
        r"|get_partial|put_page|cache_from_obj|sk_filter|free_frag|should_failslab|skb$|cmpxchg_double|kvmalloc",
    ),
    (
        "wake-up and schedule",
        r"sched|switch|wake|ttwu|enqueue_(task|entity)|dequeue_(task|entity)"
        r"|pick_next|put_prev|update_(curr|load|rq|cfs|min_v|blocked)|set_next|resched|wait_woken"
        r"|prepare_to_wait|finish_wait|add_wait|remove_wait|autoremove|default_wake|select_task"
        r"|fpu|reweight|place_entity|preempt|__calc_delta|psi_|cpuacct|sk_wait|schedule_timeout"
        r"|native_load|load_new_mm|available_idle|finish_task|_fair$|_rq$|rq_lock|avg_|nohz_"
        r"|prepare_task|rcu_note|dl_|_entity|calc_delta|entity|perf_event_task|kick_process"
        r"|task_(tick|fork|of)|balance|newidle|select_idle|native_read_msr|load_sp0|x86_fsgs|dequeue_"
        r"|mm_cid|raw_spin_rq|cpu_util|wq_worker|sched_clock|ktime_get$|delay_acct|pelt|__enqueue_ent"
        r"|rb_(insert|erase|next)|clear_buddies|util_est|hrtick|membarrier|io_schedule|idle|rseq|fpregs|record_times|check_spread|blkcg|rb_first",
    ),
    (
        "locks and RCU",
        r"^_raw_|spin_lock|lock_sock|release_sock|rcu_|mutex_|rwsem|local_bh"
        r"|_local_bh|refcount|rcuref|read_lock|srcu|_lock$|_unlock$|lock_sock_nested|percpu_ref",
    ),
    (
        "system call and socket",
        r"sys_|syscall|entry_SYSCALL|sock_(?!def)|sockfd|fget|fput|fdget"
        r"|inet_(send|recv)msg|security_|apparmor|aa_|audit|do_syscall|exit_to_user|sockfd_lookup"
        r"|copy_msghdr|___sys|__sys|import_|selinux|lsm|tomoyo|syscall_|inet6?_(send|recv)|bpf_lsm"
        r"|swapgs|__audit|landlock|ret_from|error_entry|cgroup_bpf",
    ),
    ("lists and thunks", r"^__list_|__x86_indirect|find_first_bit|_valid$|__fentry|return_thunk"),
    (
        "timers and interrupts",
        r"timer|detach_if|calc_wheel|hrtimer|tick|clockevents|apic|irq(?!_restore)|ktime|read_tsc"
        r"|interrupt|timekeeping|jiffies|clocksource|sched_clock|run_posix|asm_|lapic|x2apic",
    ),
    (
        "veth and softirq",
        r"veth|softirq|napi|net_rx|net_tx|netif_|dev_(queue|hard|gro|forward)"
        r"|__dev_|process_backlog|eth_|enqueue_to_backlog|xmit|qdisc|ptr_ring|gro_|xdp|bpf_prog"
        r"|dev_|netdev_|noqueue|get_rps|loopback|harmonize|passthru|ktime_get_with|tasklet",
    ),
    (
        "IP in",
        r"ip6?_(rcv|local_deliver|protocol_deliver|route_input|list_rcv|rcv_core|sublist)"
        r"|fib_|ip_mr|ipv4_dst|ip6?_rcv|ip_route_input|__mkroute|icmp|ip6_input|ip_check|ip_options"
        r"|nf_hook|early_demux|raw_local|ip6_pol_route|fib6|rt_cache|dst_release|rt_dst",
    ),
    (
        "IP out",
        r"ip6?_(out|queue|finish|local_out|xmit|send|append|push|make|generic|setup|dst)"
        r"|__ip6?_(local|finish|append|queue|make|flush)|neigh|ip_copy_addrs|ip_skb_dst|dst_mtu|ip_"
        r"|inet_select|ipv4_mtu|ipv6|ip6|dst_",
    ),
)


@functools.lru_cache(maxsize=65536)
def part_of(function: Function) -> str:
    """The part that `function` belongs to; functions of homa.ko are not looked up by name."""
    if function.module == "homa":
        return "homa.ko"
    for part, pattern in _PARTS:
        if re.search(pattern, function.name):
            return part
    return "other"
