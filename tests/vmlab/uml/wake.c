/*
 * Loaded before the C library of a user-mode-linux kernel (LD_PRELOAD), so that it
 * starts processes on every processor, does not sleep while a frame waits for it, and does
 * not stay idle forever.
 *
 * Of a process's floating-point state a kernel keeps what it was compiled for: Debian's
 * Linux 6.1 2,696 bytes. The host's kernel takes its processor's whole XSAVE area or none
 * (arch/x86/kernel/fpu/regset.c, xstateregs_set), 11,008 bytes with AMX: then the first
 * process of a guest ends before its first instruction. This library writes the part that the
 * guest knows and keeps the rest. The guest does not switch the rest between threads; but no
 * program can use AMX without a request to the kernel, which the guest's kernel does not have.
 *
 * Linux 6.1 loses an alarm of its only timer that comes while it handles the one before:
 * arch/um/os-Linux/signal.c, unblock_signals, takes it off signals_pending and "does not reenter
 * the handler". On a host that paused the guest meanwhile this happens once in hours; then no
 * timer of the guest expires any more, and os_idle_sleep repeatedly finds the host's timer not
 * armed. This library then sends an alarm; a superfluous one has no effect.
 *
 * And two races of Linux 6.1 to 6.18:
 *
 * - The host's tap sends SIGIO before it makes the descriptor readable
 *   (drivers/net/tun.c, tun_net_xmit: kill_fasync, then sk_data_ready). A guest on another
 *   processor polls between the two, finds nothing (epoll_wait returns 0) and continues; it
 *   finds the frame at the next interrupt, milliseconds later.
 * - The guest decides to sleep with its interrupts off and then sleeps
 *   (arch/um/os-Linux/time.c, os_idle_sleep): an interrupt between the two stays pending.
 *
 * This library ends the guest's sleep when one of its descriptors is readable, and polls
 * again shortly after a poll that found nothing.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const long soon = 50000; /* nanoseconds until the next poll */
enum { most_looks = 4, at_once = 30 /* tries, some 10 us */, idle_looks = 100 /* some 1 ms */ };

static int interrupts = -1; /* the descriptor on which the kernel waits for all others */

/* The kernel creates only this one. */
int epoll_create(int size)
{
	return interrupts = syscall(SYS_epoll_create, size);
}

static void look_again(void)
{
	static timer_t timer;
	static int made;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGIO };
	struct itimerspec once = { .it_value.tv_nsec = soon };

	if (!made && timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		return;
	made = 1;
	timer_settime(timer, 0, &once, NULL);
}

/* The kernel calls it, with timeout 0, from the handler of SIGIO until it returns 0. */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	static int before, looks;
	int tries = before == 0 ? at_once : 1; /* the signal may precede its event */
	int n;

	do
		n = syscall(SYS_epoll_wait, fd, events, most, timeout);
	while (n == 0 && --tries > 0);
	if (n != 0)
		looks = 0;
	else if (before == 0 && looks < most_looks && ++looks)
		look_again();
	before = n;
	return n;
}

/* After its start the kernel calls it only to sleep while idle. */
int sigsuspend(const sigset_t *mask)
{
	struct pollfd ready = { .fd = interrupts, .events = POLLIN };

	if (ppoll(&ready, 1, NULL, mask) > 0)
		kill(getpid(), SIGIO);
	errno = EINTR;
	return -1;
}

/*
 * The XSAVE area in the standard format, which ptrace uses (Intel SDM volume 1, 13.4): x87
 * and SSE state; a header that begins with XSTATE_BV, a bit for each feature that is not in
 * its initial state; and each further feature at its offset by CPUID.
 */
enum { xstate_bv = 512, extended = 576, x87_and_sse = 3, feature_most = 63, area_most = 1 << 16, cpuid_xsave = 0xd };

static struct { unsigned offset, size; } features[feature_most]; /* size 0: not in the area */
static long (*libc_ptrace)(enum __ptrace_request, ...);
static int (*libc_timer_gettime)(timer_t, struct itimerspec *);

/* Before the kernel's main: dlsym needs more stack than a guest's kernel may have left, and
 * a hypervisor emulates CPUID, in microseconds each. */
__attribute__((constructor)) static void prepare(void)
{
	unsigned offset, size, c, d;

	libc_ptrace = dlsym(RTLD_NEXT, "ptrace");
	libc_timer_gettime = dlsym(RTLD_NEXT, "timer_gettime");
	for (int i = 2; i < feature_most; i++)
		if (__get_cpuid_count(cpuid_xsave, i, &size, &offset, &c, &d) && offset >= extended) {
			features[i].offset = offset;
			features[i].size = size;
		}
}

/* Copies the guest's length bytes into the host's whole area. A feature that is not completely in
 * the guest's part keeps its state and its bit in XSTATE_BV. */
static void lay_over(uint8_t *whole, const uint8_t *guest, size_t length)
{
	uint64_t host_sets, guest_sets, known = x87_and_sse;

	memcpy(&host_sets, whole + xstate_bv, sizeof host_sets);
	memcpy(&guest_sets, guest + xstate_bv, sizeof guest_sets);
	memcpy(whole, guest, extended);
	for (int i = 2; i < feature_most; i++) {
		if (features[i].size == 0 || features[i].offset + features[i].size > length)
			continue;
		known |= UINT64_C(1) << i;
		memcpy(whole + features[i].offset, guest + features[i].offset, features[i].size);
	}
	guest_sets = (guest_sets & known) | (host_sets & ~known);
	memcpy(whole + xstate_bv, &guest_sets, sizeof guest_sets);
}

/*
 * PTRACE_SETREGSET of NT_X86_XSTATE for a part of the area. It blocks signals, since their handlers
 * in the guest's kernel may call it too, and the area is static: it is too large for the stack.
 */
static long set_part(pid_t process, const struct iovec *part)
{
	static uint8_t area[area_most];
	static size_t length; /* of the host's; 0: not known yet */
	struct iovec whole = { .iov_base = area, .iov_len = sizeof area };
	sigset_t all, before;
	long result;

	if (part->iov_len < extended || (length != 0 && part->iov_len >= length))
		return libc_ptrace(PTRACE_SETREGSET, process, NT_X86_XSTATE, part);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	result = libc_ptrace(PTRACE_GETREGSET, process, NT_X86_XSTATE, &whole);
	if (result == 0) {
		length = whole.iov_len;
		lay_over(area, part->iov_base, part->iov_len);
		result = libc_ptrace(PTRACE_SETREGSET, process, NT_X86_XSTATE, &whole);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	pid_t process;
	void *address, *data;

	va_start(rest, request);
	process = va_arg(rest, pid_t);
	address = va_arg(rest, void *);
	data = va_arg(rest, void *);
	va_end(rest);
	if (request == PTRACE_SETREGSET && (uintptr_t)address == NT_X86_XSTATE)
		return set_part(process, data);
	return libc_ptrace(request, process, address, data);
}

/* The kernel calls it when it is idle, and sleeps if the timer is armed. */
int timer_gettime(timer_t timer, struct itimerspec *left)
{
	static int looks;
	int result = libc_timer_gettime(timer, left);

	if (result != 0 || left->it_value.tv_sec != 0 || left->it_value.tv_nsec != 0)
		looks = 0;
	else if (++looks == idle_looks) {
		looks = 0;
		kill(getpid(), SIGALRM);
	}
	return result;
}
