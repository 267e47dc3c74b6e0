// Package clocksim simulates a host's clock and its chronyd: a day takes about a second, and the true time is known to
// the nanosecond.
//
// Purpose: tests/vmlab checks the error bound of clocks/chrony with real kernels for minutes; this package checks what
// takes hours, such as an outage of a receiver for ten minutes or six hours. A fake with a generous bound would prove
// nothing, so the simulated daemon computes its reports as chronyd does, from its measurements, without the true time:
//
//	Oscillator  rate: constant, random walk, two temperature cycles, jumps, ramps
//	Clock       CLOCK_REALTIME and CLOCK_MONOTONIC of Linux: both are slewed, one is stepped
//	NTP, Pulse  sources: exchanges over a path of two random delays; pulses with a latency
//	filter      chronyd's median filter of a reference clock's samples (samplefilt.c)
//	register    chronyd's regression over the last samples (sourcestats.c, regress.c)
//	Chronyd     chronyd's reference, tracking report and slewing (reference.c, sys_generic.c)
//
// Written from chrony's formulas (release 4.x; chrony.conf(5), RFC 5905), not from its code. Simplifications, and the
// direction of their error:
//
//   - one source a host, so no selection, no combination, no falsetickers;
//   - a constant poll interval, and no test of a sample's delay: every sample counts,
//     however long its exchange took (more noise than chronyd lets in);
//   - the server's root delay and dispersion are not rounded up to the 15 us of the
//     NTP packet (a smaller bound than chronyd's);
//   - the kernel sets any frequency at once and exactly; no temperature compensation,
//     no smoothing of served time, no leap seconds.
package clocksim
