/*
 * Loaded before the C library of a user-mode-linux kernel (LD_PRELOAD), so that it
 * does not sleep while a frame waits for it. Two races of Linux 6.1 to 6.18:
 *
 * - The host's tap sends SIGIO before it makes the descriptor readable
 *   (drivers/net/tun.c, tun_net_xmit: kill_fasync, then sk_data_ready). A guest on another
 *   processor looks in between, sees nothing (epoll_wait gives 0) and goes on; the frame is
 *   found at the next interrupt, milliseconds later.
 * - The guest decides to sleep with its interrupts off and then sleeps
 *   (arch/um/os-Linux/time.c, os_idle_sleep): what comes in between is only noted.
 *
 * Here the guest's sleep ends when one of its descriptors is readable, and what it
 * looked for in vain it looks for again a little later.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long soon = 50000; /* nanoseconds until it looks again */
enum { most_looks = 4, at_once = 30 /* tries, some 10 us */ };

static int interrupts = -1; /* the descriptor on which the kernel waits for all others */

/* The kernel makes one, and no other. */
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

/* The kernel calls it, with no timeout, from the handler of SIGIO until it gives 0. */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	static int before, looks;
	int tries = before == 0 ? at_once : 1; /* a signal, and perhaps nothing yet that it is for */
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

/* The kernel calls it to be idle, and from nowhere else once it runs. */
int sigsuspend(const sigset_t *mask)
{
	struct pollfd ready = { .fd = interrupts, .events = POLLIN };

	if (ppoll(&ready, 1, NULL, mask) > 0)
		kill(getpid(), SIGIO);
	errno = EINTR;
	return -1;
}
