// Package vmlab runs guests of user-mode-linux: real kernels with a clock of their
// own each, on the host's own root, connected by a bridge in a private network
// namespace. In them chronyd and gpsd really discipline a clock, and the agent
// measures; what it prints is held against the processor's counter, which all of
// them share (package truth).
//
// A guest is started by Start, told what to do by Guest.Do, and leaves its logs in
// its directory (package record); cmd/guest is its init. The kernel is an option: any
// kernel built with ARCH=um will do.
//
// Two races of user-mode Linux and of the host's tap driver let a frame wait for a guest
// until its next interrupt, milliseconds later; uml/wake.c closes them. What is late after
// that is late because the machine stood still: a hypervisor or the host's kernel had the
// processor. The LAN check watches for that beside the guests, leaves out what met it, and
// says how much that was. uml/wake.c also lets a guest run whose kernel knows of less
// floating-point state than the host's processor has.
//
// Truth is asserted wherever the lab runs: the share of intervals that hold the true delay,
// that no interval lies below zero, states, reasons, alerts, and that all packets are
// accounted for. Neither chance nor what else the machine does decides any of it. How
// narrow intervals are, how small errors and how late packets is precision: it is told in any
// case, and asserted where the machine is the lab's alone (-precision).
//
// Alerts are evaluated by promtool over what the guests' agents exported while the
// scenarios ran (package alerting).
//
// Linux on amd64, root, and Debian's packages user-mode-linux, chrony, gpsd, prometheus and gcc.
package vmlab
