package stamp

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/namespace"
)

// twoWays is a host with two routes to 10.78.0.2, each to another host with that address. The kernel chooses the
// first.
type twoWays struct {
	t    *testing.T
	host netns.NsHandle
}

func newTwoWays(t *testing.T) *twoWays {
	t.Helper()
	w := &twoWays{t: t, host: namespace.New(t)}
	namespace.Up(t, w.host, "lo")
	return w
}

// add makes a veth to a new namespace and configures this end's address.
func (w *twoWays) add(name, address, vrf string) (remote netns.NsHandle) {
	w.t.Helper()
	remote = namespace.New(w.t)
	namespace.Veth(w.t, w.host, name, remote, "far", 0)
	if vrf != "" {
		namespace.Up(w.t, w.host, vrf)
		namespace.Do(w.t, w.host, func() {
			red, err := netlink.LinkByName(vrf)
			namespace.Check(w.t, err)
			local, err := netlink.LinkByName(name)
			namespace.Check(w.t, err)
			namespace.Check(w.t, netlink.LinkSetMaster(local, red))
		})
	}
	namespace.Up(w.t, w.host, name, address)
	namespace.Up(w.t, remote, "far", "10.78.0.2/24")
	return remote
}

func (w *twoWays) vrf(name string) (err error) {
	namespace.Do(w.t, w.host, func() {
		red := &netlink.Vrf{LinkAttrs: netlink.NewLinkAttrs(), Table: 78}
		red.Name = name
		err = netlink.LinkAdd(red)
	})
	return err
}

// ask measures the peer by an interface or a VRF.
func (w *twoWays) ask(b testbed, by string, count uint64) (Report, error) {
	w.t.Helper()
	o := quick()
	o.Interface = by
	p, err := NewType().NewProber(b.env, probe.Target{Peer: twoWaysPeer.String()}, o)
	namespace.Check(w.t, err)
	var r Report
	namespace.Do(w.t, w.host, func() { r, err = p.Measure(w.t.Context(), count, func(Report) {}) })
	return r, err
}

var twoWaysPeer = netip.MustParseAddrPort("10.78.0.2:862")

// reflectAt runs a reflector at the peer's address in a namespace.
func (w *twoWays) reflectAt(remote netns.NsHandle) {
	all := &bareReflector{lost: func(uint32) (bool, bool) { return false, false }}
	namespace.Do(w.t, remote, func() { fakePeerAt(w.t, twoWaysPeer, all.reply) })
}

func TestPacketsLeaveByTheInterfaceThatIsNamed(t *testing.T) {
	w, b := newTwoWays(t), newTestbed(t, reflector.Options{})
	w.add("first", "10.78.0.1/24", "")
	w.reflectAt(w.add("second", "10.78.0.3/24", ""))
	if r, err := w.ask(b, "second", 50); err != nil || r.RoundTrip.Received != 50 {
		t.Errorf("by the second: %v, %s", err, asJSON(t, r))
	}
	if r, err := w.ask(b, "", 5); err == nil {
		t.Errorf("a reply by the kernel's own choice, which has no reflector: %s", asJSON(t, r))
	}
	if _, err := w.ask(b, "none", 5); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("an absent interface: %v", err)
	}
}

func TestPacketsLeaveByTheVRFThatIsNamed(t *testing.T) {
	w, b := newTwoWays(t), newTestbed(t, reflector.Options{})
	if err := w.vrf("red"); err != nil {
		t.Skipf("SKIPPED, NOT PASSED: this kernel makes no VRF: %v", err)
	}
	w.add("first", "10.78.0.1/24", "")
	w.reflectAt(w.add("second", "10.78.0.1/24", "red"))
	if r, err := w.ask(b, "red", 50); err != nil || r.RoundTrip.Received != 50 {
		t.Errorf("by the VRF: %v, %s", err, asJSON(t, r))
	}
	if r, err := w.ask(b, "", 5); err == nil {
		t.Errorf("a reply by the kernel's own choice, which has no reflector: %s", asJSON(t, r))
	}
}
