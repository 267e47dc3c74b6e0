package udptraffic

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/net/sched"
	"oneway.example/tests/remoteend"
)

// waiting returns the number of packets in a socket's buffer.
func waiting(t *testing.T, at *net.UDPConn) (n int) {
	t.Helper()
	raw, err := at.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	err = raw.Control(func(fd uintptr) {
		for {
			if _, _, err := syscall.Recvfrom(int(fd), buf, syscall.MSG_DONTWAIT); err != nil {
				return
			}
			n++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestClientSendsTwoHellosASecondUnlessAStreamSendsMore(t *testing.T) {
	remote, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	e, err := stream.Open(stream.Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := &carrier{session: e.Join(7), remote: remote.LocalAddr().(*net.UDPAddr).AddrPort()}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second+time.Millisecond)
		defer cancel()
		go c.hello(ctx)
		time.Sleep(10*time.Second + 1) // simulated time (synctest)
		if n := waiting(t, remote); n != 20 {
			t.Errorf("%d hellos in 10 s, want 20", n)
		}
		c.sending.Store(true)
		time.Sleep(10 * time.Second) // simulated time (synctest)
		if n := waiting(t, remote); n != 0 {
			t.Errorf("%d hellos in 10 s of a stream, want none", n)
		}
		c.sending.Store(false)
		time.Sleep(10 * time.Second) // simulated time (synctest)
		if n := waiting(t, remote); n != 20 {
			t.Errorf("%d hellos in 10 s, want 20", n)
		}
	})
}

// Otherwise a concurrent stream of the load server would pause.
func TestClientSendsHellosInThePausesOfItsStream(t *testing.T) {
	for pause, said := range map[time.Duration]bool{1100 * time.Millisecond: true, time.Millisecond: false} {
		p := ready(t)
		c := &carrier{client: p.Client, session: p.session, remote: p.at(), clock: static.New(time.Millisecond, metric.Discard{}), drain: remoteend.Timeout}
		plan := startOf(1, sample.Forward).Plan
		plan.Segments = append(plan.Segments, plan.Segments[0])
		plan.Segments[0].Bursts, plan.Segments[1].Bursts = 1, max(1, int(time.Second/pause))
		plan.Segments[1].Pause = pause
		before := p.serving.remote.open()[0].Stats().Hellos
		var during uint64
		ctx, cancel := context.WithCancel(t.Context())
		var greets sync.WaitGroup
		greets.Go(func() { c.hello(ctx) })
		out, err := c.Transfer(t.Context(), sample.Forward, plan, 0, func(at loadtest.Progress) {
			during = p.serving.remote.open()[0].Stats().Hellos - before
		}, nil)
		cancel()
		greets.Wait()
		if err != nil || out.Cut != "" {
			t.Fatalf("%+v, %v", out, err)
		}
		if said && during == 0 || !said && during > 1 { // one may come before the first packet
			t.Errorf("a pause of %v: %d hellos during the stream", pause, during)
		}
	}
}

func TestTimeoutOfASilentLoadServer(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	const s, idle = time.Second, 5 * time.Second
	plan := startOf(1, 0).Plan
	plan.Segments[0].Interval = 2 * s
	const all, udp, control = loadcontrol.SilentAll, loadcontrol.SilentUDP, loadcontrol.SilentControl
	for name, c := range map[string]struct {
		d         sample.Direction
		planned   time.Duration // planned end of all transfers
		over      time.Duration // end of sending; zero: not yet
		heard     time.Duration
		now       time.Duration
		given     time.Duration // end of the timeout; zero: none yet
		greeted   time.Duration // the last hello of the load server; zero: it sends none
		what      loadcontrol.Silent
		recovered time.Duration // TCP may be silent until then
		requested bool          // the load server has not replied to Start, which was at 1 s
		held      time.Duration // round trip of a hello since a message is due
	}{
		"a reverse stream":                                    {sample.Reverse, 60 * s, 0, 20 * s, 30 * s, 32 * s, 0, all, 0, false, 0},
		"a reverse stream without packets so far":             {sample.Reverse, 60 * s, 0, 0, 5 * s, 12 * s, 0, all, 0, false, 0},
		"a reverse stream after its planned end":              {sample.Reverse, 60 * s, 0, 59 * s, 61 * s, 60*s + idle + grace, 0, all, 0, false, 60 * s},
		"a reverse stream with packets after its planned end": {sample.Reverse, 60 * s, 0, 80 * s, 90 * s, 80*s + idle + grace, 0, all, 0, false, 60 * s},
		"a forward stream during sending":                     {sample.Forward, 60 * s, 0, 0, 59 * s, 0, 0, all, 0, false, 0},
		"a forward stream that takes longer than planned":     {sample.Forward, 60 * s, 0, 0, 600 * s, 0, 0, all, 0, false, 0},
		"a forward stream, and a longer one at the same time": {sample.Forward, 60 * s, 10 * s, 10 * s, 59 * s, 0, 0, all, 0, false, 0},
		"a forward stream after sending":                      {sample.Forward, 60 * s, 61 * s, 50 * s, 70 * s, 61*s + idle + grace, 0, all, 0, false, 60 * s},
		"a forward stream with part of the records":           {sample.Forward, 60 * s, 61 * s, 90 * s, 95 * s, 90*s + idle + grace, 0, all, 0, false, 60 * s},
		"a reverse stream, hellos come":                       {sample.Reverse, 60 * s, 0, 20 * s, 30 * s, 32 * s, 29 * s, silentStream, 0, false, 0},
		"hellos stopped after a reverse stream":               {sample.Reverse, 60 * s, 0, 59 * s, 72 * s, 75 * s, 70 * s, control, 0, false, 0},
		"hellos come after a reverse stream":                  {sample.Reverse, 60 * s, 0, 59 * s, 70 * s, 75 * s, 70 * s, control, 0, false, 0},
		"hellos stopped before the end of a reverse stream":   {sample.Reverse, 60 * s, 0, 58 * s, 61 * s, 68 * s, 20 * s, udp, 0, false, 0},
		"hellos stopped during sending":                       {sample.Forward, 60 * s, 0, 0, 35 * s, 40 * s, 30 * s, udp, 0, false, 0},
		"hellos come during sending":                          {sample.Forward, 60 * s, 0, 0, 35 * s, 45 * s, 35 * s, udp, 0, false, 0},
		"hellos stopped after sending":                        {sample.Forward, 60 * s, 61 * s, 50 * s, 65 * s, 72 * s, 62 * s, udp, 0, false, 60 * s},
		"hellos come, and no records":                         {sample.Forward, 60 * s, 61 * s, 50 * s, 74 * s, 76 * s, 74 * s, control, 0, false, 0},
		"records in a queue of 10 s":                          {sample.Forward, 60 * s, 61 * s, 50 * s, 95 * s, 96 * s, 94 * s, control, 0, false, 10 * s},
		"no records after an interruption":                    {sample.Forward, 60 * s, 61 * s, 50 * s, 90 * s, 93 * s, 90 * s, control, 78 * s, false, 0},
		"interruptions all the time":                          {sample.Forward, 60 * s, 61 * s, 50 * s, 125 * s, 61*s + idle + grace, 125 * s, all, 128 * s, false, 0},
		"no reply to the start of a forward stream":           {sample.Forward, 60 * s, 0, 0, 15 * s, 16 * s, 15 * s, control, 0, true, 0},
		"no reply to the start of a reverse stream":           {sample.Reverse, 60 * s, 0, 0, 15 * s, 16 * s, 15 * s, control, 0, true, 0},
		"nothing at all since the start":                      {sample.Reverse, 60 * s, 0, 0, 10 * s, 10500 * time.Millisecond, s / 2, udp, 0, true, 60 * s},
		"no records, and no reply to a hello":                 {sample.Forward, 60 * s, 61 * s, 50 * s, 90 * s, 61*s + idle + grace, 125 * s, all, 0, false, 60 * s},
	} {
		x := &transferring{carrier: &carrier{planned: at(c.planned)}, begun: at(0), Start: Start{Direction: c.d, Plan: plan, Idle: idle}}
		if x.started.Store(!c.requested); c.requested {
			x.begun = at(s)
		}
		if c.over > 0 {
			x.over.Store(at(c.over).UnixNano())
		}
		e := evidence{received: at(c.heard), recovered: at(c.recovered), held: c.held}
		if c.greeted > 0 {
			e.packet = at(max(c.greeted, c.heard))
		}
		got := x.silence(e, at(c.now))
		switch {
		case c.given == 0 && got.since.Before(at(c.now)):
			t.Errorf("%s: timeout at %v, want none before the end of sending", name, got.end().Sub(begin))
		case c.given > 0 && (!got.end().Equal(at(c.given)) || got.what != c.what):
			t.Errorf("%s: timeout of %q at %v, want %q at %v", name, got.what, got.end().Sub(begin), c.what, c.given)
		}
	}
}

func TestPlannedEndIsThatOfTheLastTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c carrier
		for _, d := range []time.Duration{5, 30, 10} {
			c.plan(d * time.Second)
		}
		if got := time.Until(c.end()); got != 30*time.Second {
			t.Errorf("planned for %v, want 30s", got)
		}
	})
}

func TestTimeoutNamesTheLoadServer(t *testing.T) {
	p := ready(t)
	c := &carrier{client: p.Client, session: p.session, remote: p.at(), clock: static.New(time.Millisecond, metric.Discard{}), drain: remoteend.Timeout}
	x := &transferring{carrier: c, Start: startOf(1, sample.Forward)}
	x.started.Store(true)
	x.Idle = -grace - 10*time.Second // so that the timeout is over
	x.over.Store(time.Now().UnixNano())
	ctx, ended := context.WithCancelCause(t.Context())
	x.watch(ctx, ended)
	var f *loadtest.Failure
	if why := context.Cause(ctx); !errors.As(why, &f) || f.Reason != runreason.Lost || !strings.HasPrefix(why.Error(), "nothing was received from the load server at "+p.at().String()) {
		t.Errorf("%v", why)
	}
}

func TestErrorOfATransferNamesTheLoadServer(t *testing.T) {
	late := errors.New("transfer 3: no reply within 1m0s")
	for want, cause := range map[string]error{
		"forward transfer: load server 192.0.2.1:8620: transfer 3: no reply within 1m0s": &loadcontrol.ServerError{Address: "192.0.2.1:8620", Err: late},
		"forward transfer: stream: what is this":                                         errors.New("stream: what is this"),
	} {
		if err := failed(sample.Forward, cause); err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// Both directions run: the client sends packets, and no hellos.
func TestPacketsOfTheClientEndAPause(t *testing.T) {
	p := ready(t)
	x := startOf(1, sample.Forward)
	x.Plan.Segments[0].Interval, x.Plan.Segments[0].Bursts = 10*time.Millisecond, 200
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	sent := make(chan int)
	go func() {
		s, err := p.session.Send(t.Context(), 1, p.at(), x.Plan, stream.SendOptions{})
		if err != nil {
			t.Error(err)
		}
		sent <- len(s.Packets)
	}()
	remoteend.Eventually(t, "packets", func() bool { _, _, ok := p.serving.stream.LastStreamPacket(); return ok })
	c := &consent{p.serving, sched.Now()}
	begin := time.Now()
	c.Unreachable(syscall.EHOSTUNREACH)
	remoteend.Eventually(t, "the end of the pause", c.Given)
	if took := time.Since(begin); took > time.Second { // the last hello is 3 s old
		t.Errorf("paused for %v, with packets of the client every 10 ms", took)
	}
	if err := p.Sent(t.Context(), 1, <-sent); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
}
