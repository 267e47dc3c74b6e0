package tcptraffic_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe/link"
)

// falseEnd is the remote end of this traffic that changes its messages.
type falseEnd struct {
	tcptraffic.Type
	change func(name string, body []byte, data []byte) ([]byte, []byte)
}

func (f falseEnd) New(env traffic.Env) traffic.Remote {
	return falseRemote{f.Type.New(env), f.change}
}

type falseRemote struct {
	traffic.Remote
	change func(name string, body []byte, data []byte) ([]byte, []byte)
}

func (f falseRemote) Open(h traffic.Host, p json.RawMessage) (traffic.Session, any, *loadcontrol.Refusal) {
	return f.Remote.Open(falseHost{h, f.change}, p)
}

type falseHost struct {
	traffic.Host
	change func(name string, body []byte, data []byte) ([]byte, []byte)
}

func (f falseHost) SendMessage(name string, body any, data []byte) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	b, data = f.change(name, b, data)
	return f.Host.SendMessage(name, json.RawMessage(b), data)
}

func TestFalseReportsAreErrorsOfTheRun(t *testing.T) {
	alter := func(field string, to any) func(string, []byte, []byte) ([]byte, []byte) {
		return func(name string, body, data []byte) ([]byte, []byte) {
			if name != "finished" {
				return body, data
			}
			var m map[string]any
			_ = json.Unmarshal(body, &m) // our own message
			m["flows"].([]any)[0].(map[string]any)[field] = to
			body, _ = json.Marshal(m)
			return body, data
		}
	}
	for what, c := range map[string]struct {
		direction sample.Direction
		change    func(string, []byte, []byte) ([]byte, []byte)
		want      string
	}{
		"more received than sent": {sample.Forward, alter("payload_bytes", int64(1<<40)), "of the"},
		"less sent than received": {sample.Reverse, alter("payload_bytes", 1), "with"},
		"an unknown end":          {sample.Forward, alter("ended", "victory"), "unknown"},
		"samples without data":    {sample.Reverse, alter("samples", 24), "too short"}, // the most; 22 are due
		"too many samples":        {sample.Reverse, alter("samples", math.MaxInt32), "want 0 to"},
		"a negative time":         {sample.Forward, alter("first_ns", -5), "want 0 to"},
		"data too long": {sample.Forward, func(_ string, body, data []byte) ([]byte, []byte) {
			if len(data) > 0 {
				data = append(data, 0)
			}
			return body, data
		}, "too many"},
		"stamps of a plain transfer": {sample.Forward, alter("stamped", map[string]int{}), "want none"},
		"a second start": {sample.Forward, func(name string, body, data []byte) ([]byte, []byte) {
			if name == "listening" {
				return []byte(`{"id":1,"ports":[],"cookie":""}`), data
			}
			return body, data
		}, "0 ports"},
	} {
		_, err := once(t, serveFalsely(t, falseEnd{change: c.change}), func(ctx context.Context, s *tcptraffic.Session) error {
			_, err := s.Transfer(ctx, plan(c.direction, 200*time.Millisecond))
			return err
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// serveFalsely is loadtesttest.RemoteEnd with another traffic.
func serveFalsely(t *testing.T, f traffic.Type) loadsession.Options {
	t.Helper()
	dir := t.TempDir()
	o := loadsession.DefaultOptions()
	o.TokenFile = filepath.Join(dir, "token")
	loadtesttest.WriteToken(t, filepath.Join(dir, "tokens"), o.TokenFile)
	r, err := loadserver.New(loadserver.Options{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, TokensFile: filepath.Join(dir, "tokens"), StateDir: dir,
	}, loadserver.Env{
		Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}),
		Links: link.NewTable(nil), Traffic: []traffic.Type{f},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- r.Run(ctx) }()
	select {
	case <-r.Started():
	case err := <-over:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	o.LoadServer, o.Pin = r.Addrs()[0].String(), r.Pin()
	return o
}

// A record that does not arrive leaves its end unknown: nothing is told of it.
func TestRecordThatDoesNotArriveLeavesItsEndUnknown(t *testing.T) {
	lose := func(name string, body, data []byte) ([]byte, []byte) {
		if name == "finished" {
			return []byte(`{"id":1,"flows":[]}`), nil
		}
		return body, data
	}
	for _, d := range sample.Directions() {
		var res *tcptraffic.Result
		_, err := once(t, serveFalsely(t, falseEnd{change: lose}), func(ctx context.Context, s *tcptraffic.Session) (err error) {
			res, err = s.Transfer(ctx, plan(d, 200*time.Millisecond))
			return err
		})
		if err == nil || res == nil {
			t.Fatalf("%s: %v, %v", d, res, err)
		}
		own, other := &res.Sender[0], &res.Receiver[0]
		if d == sample.Reverse {
			own, other = other, own
		}
		if !own.Known() || own.Payload == 0 || other.Known() || !strings.Contains(res.Cut, "unknown") {
			t.Errorf("%s: this end %s, %d bytes; the load server's %q; %q", d, own.Ended, own.Payload, other.Ended, res.Cut)
		}
	}
}
