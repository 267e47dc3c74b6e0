package hostport

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// privileged are the ports below this one: they need a capability.
const privileged = 1024

// Absent reports whether an error of listening says that this host does not have the address, or its interface, and may get it later.
func Absent(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.ENODEV)
}

// ListenError adds to an error of listening what a person can do about it, if that is known. address is "address:port", and program
// what listens there, such as "reflector".
func ListenError(err error, address, program string) error {
	errno, _ := errors.AsType[syscall.Errno](err)
	_, text, _ := net.SplitHostPort(address) // an address without a port has no such error
	port, notNumber := strconv.Atoi(text)
	switch errno { //nolint:exhaustive // no remedy is known for the others
	case syscall.EACCES:
		if notNumber == nil && port < privileged {
			return fmt.Errorf("%w: ports below %d need CAP_NET_BIND_SERVICE; run as root, give the program the capability, or listen on a higher port", err, privileged)
		}
	case syscall.EADDRINUSE:
		return fmt.Errorf("%w: another program, possibly another %s, uses this port; stop it or listen on another port", err, program)
	case syscall.EADDRNOTAVAIL:
		return fmt.Errorf("%w: this host does not have this address", err)
	case syscall.EAFNOSUPPORT:
		return fmt.Errorf("%w: this host does not support this address family; remove the address", err)
	}
	return err
}
