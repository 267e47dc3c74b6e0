// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pps-host.c -- a pulse at each second of the host's clock, for guests of the lab
 *
 * A user-mode-linux guest has a clock of its own; its persistent clock is the
 * host's CLOCK_REALTIME. A timer wakes up a little before the host's second,
 * watches the host's clock pass it, and then reports a pulse as an interrupt
 * handler would: pps_get_ts() takes a timestamp of the guest's clock. A wake-up that
 * is too late reports nothing, which is a missed pulse for the guest.
 *
 * Part of the tests of oneway, not of the program; it is compiled into a guest
 * kernel by build.sh and is under the kernel's license.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/pps_kernel.h>
#include <linux/timekeeping.h>

/* The time before the second at which the timer wakes up: the guest's timers are late
 * by some 100 us, and its clock may differ by 500 ppm. */
#define EARLY_NS (1 * NSEC_PER_MSEC)

static struct pps_device *pps;
static struct hrtimer timer;

static ktime_t until_next(void)
{
	struct timespec64 now;

	read_persistent_clock64(&now);
	if (now.tv_nsec < NSEC_PER_SEC - 2 * EARLY_NS)
		return ns_to_ktime(NSEC_PER_SEC - EARLY_NS - now.tv_nsec);
	return ns_to_ktime(2 * NSEC_PER_SEC - EARLY_NS - now.tv_nsec);
}

static enum hrtimer_restart pps_host_fire(struct hrtimer *t)
{
	struct pps_event_time ts;
	struct timespec64 now;
	time64_t second;

	read_persistent_clock64(&now);
	second = now.tv_sec;
	/* In time: at most 2 * EARLY_NS are left until the second. */
	if (now.tv_nsec > NSEC_PER_SEC - 2 * EARLY_NS) {
		do {
			read_persistent_clock64(&now);
		} while (now.tv_sec == second);
		pps_get_ts(&ts);
		pps_event(pps, &ts, PPS_CAPTUREASSERT, NULL);
	}
	hrtimer_forward_now(t, until_next());
	return HRTIMER_RESTART;
}

static struct pps_source_info pps_host_info = {
	.name	= "host",
	.path	= "",
	.mode	= PPS_CAPTUREASSERT | PPS_OFFSETASSERT | PPS_CANWAIT | PPS_TSFMT_TSPEC,
	.owner	= THIS_MODULE,
};

static int __init pps_host_init(void)
{
	pps = pps_register_source(&pps_host_info, PPS_CAPTUREASSERT | PPS_OFFSETASSERT);
	if (IS_ERR(pps)) {
		pr_err("cannot register the pulse\n");
		return PTR_ERR(pps);
	}
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer.function = pps_host_fire;
	hrtimer_start(&timer, until_next(), HRTIMER_MODE_REL);
	return 0;
}

static void __exit pps_host_exit(void)
{
	hrtimer_cancel(&timer);
	pps_unregister_source(pps);
}

module_init(pps_host_init);
module_exit(pps_host_exit);

MODULE_DESCRIPTION("a pulse at each second of the user-mode-linux host");
MODULE_LICENSE("GPL");
