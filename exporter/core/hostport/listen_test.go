package hostport

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestErrorsOfListeningHaveARemedy that fits the port.
func TestErrorsOfListeningHaveARemedy(t *testing.T) {
	for _, c := range []struct {
		errno   syscall.Errno
		address string
		want    string
	}{
		{syscall.EACCES, ":862", ": ports below 1024 need CAP_NET_BIND_SERVICE; "},
		{syscall.EACCES, "[::1]:8620", ""},
		{syscall.EADDRINUSE, "192.0.2.1:8620", ": another program, possibly another load server, uses this port; "},
		{syscall.EADDRNOTAVAIL, "192.0.2.1:8620", ": this host does not have this address"},
		{syscall.EAFNOSUPPORT, "[::1]:8620", ": this host does not support this address family; "},
		{syscall.EINVAL, "nonsense", ""},
	} {
		err := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", c.errno)}
		if got := ListenError(err, c.address, "load server").Error(); !strings.HasPrefix(got, fmt.Sprint(err, c.want)) || c.want == "" && got != err.Error() {
			t.Errorf("%s: %s, want %q after the error", c.address, got, c.want)
		}
	}
}
