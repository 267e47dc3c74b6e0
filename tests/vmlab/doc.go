// Package vmlab runs guests of user-mode-linux: real kernels, each with its own
// clock, on the host's own root, connected by a bridge in a private network
// namespace. In them chronyd and gpsd discipline a clock, and the agent
// measures; its results are compared with the processor's counter, which all of
// them share (package truth).
//
// Start starts a guest, Guest.Do sends it commands, and it writes its logs to
// its directory (package record); cmd/guest is its init. The kernel is an option: any
// kernel built with ARCH=um is suitable.
//
// Two races of user-mode Linux and of the host's tap driver let a frame wait for a guest
// until its next interrupt, milliseconds later; uml/wake.c closes them. Remaining
// lateness means that the machine stood still: a hypervisor or the host's kernel had the
// processor. The LAN check detects that beside the guests, excludes the affected packets, and
// prints their number. uml/wake.c also permits a guest whose kernel supports less
// floating-point state than the host's processor has.
//
// Truth is asserted wherever the lab runs: the share of intervals that contain the true delay,
// that no interval lies below zero, states, reasons, alerts, and that all packets are
// accounted for. It depends neither on chance nor on other load of the machine. The width of
// intervals, the size of errors and the lateness of packets are precision: always printed,
// and asserted where the lab is alone on the machine (-precision).
//
// promtool evaluates alerts over the series of the guests' agents during the
// scenarios (package alerting).
//
// Linux on amd64, root, and Debian's packages user-mode-linux, chrony, gpsd, prometheus and gcc.
package vmlab
