package lab

import (
	"errors"
	"net/netip"
)

// StartHost makes one more host, with lo only, until the test ends: a box between others, or an end behind one. Connect
// it with Join.
func StartHost(t TB, name string) *Host {
	t.Helper()
	Require(t)
	h := &Host{Name: name}
	var err error
	if h.space, err = newNamespace(); err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.space.deleteLinks(), h.space.close()); err != nil {
			t.Errorf("%v", err)
		}
	})
	if err := h.space.loopbackUp(); err != nil {
		t.Fatalf("%v", err)
	}
	return h
}

// Joint is an end of a pair of interfaces.
type Joint struct {
	Host *Host
	// Name is that of the interface.
	Name    string
	Address netip.Prefix
}

// Join connects two hosts by a veth pair without a link. Its frames are as on a wire.
func Join(a, b Joint) error {
	left, right := end{a.Host.space, a.Name, mac(7), []netip.Prefix{a.Address}}, end{b.Host.space, b.Name, mac(8), []netip.Prefix{b.Address}}
	if err := connect(left, right); err != nil {
		return err
	}
	if err := errors.Join(left.plainFrames(), right.plainFrames(), left.up(right), right.up(left)); err != nil {
		return err
	}
	return errors.Join(left.ready(), right.ready())
}
