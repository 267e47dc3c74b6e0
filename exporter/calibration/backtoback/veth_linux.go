package backtoback

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/calibration"
)

// vethName is that of both ends; each is alone in its namespace.
const vethName = "oneway0"

// The ends' addresses, of a network for documentation (RFC 5737), which nobody sees.
const nearPrefix, farPrefix = "192.0.2.1/30", "192.0.2.2/30"

// space is a network namespace without a name: it goes when the descriptor is closed
// and no socket is left in it, whatever happens to this process.
type space struct{ file *os.File }

// onThread runs f on a thread of its own that ends with it, so that whatever f does
// to the thread's namespace does no harm.
func onThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		result <- f()
	}()
	return <-result
}

func newSpace() (s space, err error) {
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		// /proc/self would be the main thread's.
		s.file, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		return err
	})
	if errors.Is(err, unix.EPERM) {
		return s, fmt.Errorf("backtoback: a veth pair needs network namespaces, which only root may make (CAP_SYS_ADMIN): %w", err)
	}
	if err != nil {
		return s, fmt.Errorf("backtoback: new network namespace: %w", err)
	}
	return s, nil
}

// do runs f inside the namespace.
func (s space) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("backtoback: enter network namespace: %w", err)
		}
		return f()
	})
}

func overVeth(o *Options) (p *path, err error) {
	near, err := newSpace()
	if err != nil {
		return nil, err
	}
	far, err := newSpace()
	if err != nil {
		near.file.Close()
		return nil, err
	}
	p = &path{stored: vethName, driver: "veth", near: near.do, far: far.do, close: func() { near.file.Close(); far.file.Close() }}
	if o.Interface != "" {
		p.stored = o.Interface
	}
	o.Stamp.Local = ""
	to := netip.MustParsePrefix(farPrefix).Addr()
	p.listen = netip.AddrPortFrom(to, 0)
	err = errors.Join(near.do(func() error { return pair(far) }),
		near.do(func() error { return up(nearPrefix) }), far.do(func() error { return up(farPrefix) }))
	if err == nil {
		err = near.do(func() error { return sure(p) })
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// pair makes the two ends, one here and one over there.
func pair(far space) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = vethName
	err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: vethName, PeerNamespace: netlink.NsFd(far.file.Fd())})
	if err != nil {
		return fmt.Errorf("backtoback: veth pair: %w", err)
	}
	return nil
}

// up gives this namespace's end its address and starts it.
func up(prefix string) error {
	link, err := netlink.LinkByName(vethName)
	if err != nil {
		return fmt.Errorf("backtoback: %s: %w", vethName, err)
	}
	p := netip.MustParsePrefix(prefix)
	address := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if err := errors.Join(netlink.AddrAdd(link, address), netlink.LinkSetUp(link)); err != nil {
		return fmt.Errorf("backtoback: %s: %w", vethName, err)
	}
	return nil
}

// sure makes sure that it is a veth indeed that will be measured.
func sure(p *path) error {
	if d := calibration.DriverOf(vethName); d != p.driver {
		return fmt.Errorf("backtoback: %s has driver %q, want %q", vethName, d, p.driver)
	}
	return nil
}
