// Package clocksim is a host's clock and its chronyd, simulated: a day passes in
// about a second, and the truth is known to the nanosecond.
//
// What it is for: the error bound that clock/chrony prints is proven by real
// kernels for minutes (tests/vmlab); what takes hours, such as a receiver that is
// lost for ten minutes or six hours, is proven here. A fake that reports a generous
// bound would prove nothing, so the daemon computes what it reports as chronyd does,
// from what it has measured, and knows nothing of the truth:
//
//	Oscillator  rate: constant, random walk, two temperature cycles, jumps, ramps
//	Clock       CLOCK_REALTIME and CLOCK_MONOTONIC of Linux: both are slewed, one is stepped
//	NTP, Pulse  sources: exchanges over a path of two random delays; pulses with a latency
//	filter      chronyd's median filter of a reference clock's samples (samplefilt.c)
//	register    chronyd's regression over the last samples (sourcestats.c, regress.c)
//	Chronyd     chronyd's reference, tracking report and slewing (reference.c, sys_generic.c)
//
// Written from chrony's formulas (release 4.x; chrony.conf(5), RFC 5905), not from
// its code. What is simpler than chronyd, and on which side that errs:
//
//   - one source a host, so no selection, no combination, no falsetickers;
//   - a constant poll interval, and no test of a sample's delay: every sample counts,
//     however long its exchange took (more noise than chronyd lets in);
//   - the server's root delay and dispersion are not rounded up to the 15 us of the
//     NTP packet (a smaller bound than chronyd's);
//   - the kernel sets any frequency at once and exactly; no temperature compensation,
//     no smoothing of served time, no leap seconds.
package clocksim
