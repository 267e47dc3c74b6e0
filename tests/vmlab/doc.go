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
// Linux on amd64, root, and Debian's packages user-mode-linux, chrony and gpsd.
package vmlab
