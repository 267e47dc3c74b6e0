package gpsd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
)

// What gpsd says; the device is always /dev/ttyS0.
const (
	banner  = `{"class":"VERSION","release":"3.22","rev":"3.22","proto_major":3,"proto_minor":14}`
	pool    = `{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/ttyS0","activated":"2026-11-21T14:44:51.630Z"}]}`
	noPool  = `{"class":"DEVICES","devices":[]}`
	echo    = `{"class":"WATCH","enable":true,"json":true,"nmea":false,"raw":0,"scaled":false,"timing":true,"split24":false,"pps":true}`
	gone    = `{"class":"DEVICE","path":"/dev/ttyS0","activated":0}`
	back    = `{"class":"DEVICE","path":"/dev/ttyS0","activated":"2026-11-21T14:50:00.000Z"}`
	noFix   = `{"class":"TPV","device":"/dev/ttyS0","mode":1}`
	fix3D   = `{"class":"TPV","device":"/dev/ttyS0","mode":3,"time":"2026-11-21T14:44:58.000Z","ept":0.005}`
	skyView = `{"class":"SKY","device":"/dev/ttyS0","nSat":3,"uSat":2,"satellites":[{"PRN":7,"used":true},{"PRN":2,"used":true},{"PRN":30,"used":false}]}`
	pulse   = `{"class":"PPS","device":"/dev/ttyS0","real_sec":1795272300,"real_nsec":0,"clock_sec":1795272299,"clock_nsec":999996500,"precision":-20,"qErr":-3142}`
	toff    = `{"class":"TOFF","device":"/dev/ttyS0","real_sec":1795272298, "real_nsec":0,"clock_sec":1795272298,"clock_nsec":54211377}`
)

// daemon is a fake gpsd.
type daemon struct {
	mu       sync.Mutex
	down     bool     // the port is closed
	silent   bool     // accepts and reads, but sends nothing
	hangUp   bool     // closes after its banner
	reply    []string // to a request
	dialed   []time.Time
	requests []string
	peer     net.Conn // the present connection
	// turn is whose turn to write it is: a channel, since simulated time (synctest) stands
	// still while a goroutine waits for the mutex of a pipe.
	turn chan struct{}
}

func newDaemon() *daemon {
	return &daemon{reply: []string{pool, echo}, turn: make(chan struct{}, 1)}
}

func (d *daemon) write(conn net.Conn, text string) error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	_, err := io.WriteString(conn, text)
	return err
}

// set changes the daemon under its lock.
func (d *daemon) set(f func(d *daemon)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *daemon) connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.dialed)
}

func (d *daemon) received() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.requests)
}

// dial is for Options.dial.
func (d *daemon) dial(context.Context) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dialed = append(d.dialed, time.Now())
	if d.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	here, there := net.Pipe()
	d.peer = there
	go d.serve(there)
	return here, nil
}

func (d *daemon) serve(conn net.Conn) {
	defer conn.Close()
	requests := bufio.NewScanner(conn)
	for first := true; requests.Scan(); first = false {
		d.mu.Lock()
		d.requests = append(d.requests, requests.Text())
		reply, hangUp := d.reply, d.hangUp
		if d.silent {
			reply = nil
		} else if first {
			reply = append([]string{banner}, reply...)
		}
		d.mu.Unlock()
		for _, line := range reply {
			if d.write(conn, line+"\r\n") != nil {
				return
			}
		}
		if hangUp {
			return
		}
	}
}

// send writes bytes on the present connection; what the client does not read
// any more is lost.
func (d *daemon) send(text string) {
	d.mu.Lock()
	peer := d.peer
	d.mu.Unlock()
	_ = d.write(peer, text)
}

// cut ends the present connection.
func (d *daemon) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.peer.Close()
}

// testbed is a client and its fake gpsd in a synctest bubble.
type testbed struct {
	*testing.T
	daemon *daemon
	sink   *metrictest.Sink
	client *Client
}

// inTestbed runs f beside a running client, and then checks that all ends.
func inTestbed(t *testing.T, o Options, prepare func(d *daemon), f func(b *testbed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &testbed{T: t, daemon: newDaemon(), sink: &metrictest.Sink{}}
		if prepare != nil {
			prepare(b.daemon)
		}
		o.Sink, o.dial = b.sink, b.daemon.dial
		if o.random == nil {
			o.random = func() float64 { return 1 }
		}
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		b.client = c
		stop := clocktest.Start(t, c.Run, b.sink)
		synctest.Wait()
		f(b)
		stop()
	})
}

// send sends lines and lets them arrive.
func (b *testbed) send(lines ...string) {
	for _, line := range lines {
		b.daemon.send(line + "\r\n")
	}
	synctest.Wait()
}

// tick lets a second go by, in which the metrics follow.
func (b *testbed) tick() { time.Sleep(publishEvery); synctest.Wait() }

// every says lines each second for a while.
func (b *testbed) every(d time.Duration, lines ...string) {
	for ; d > 0; d -= time.Second {
		b.send(lines...)
		time.Sleep(time.Second) // simulated time (synctest)
	}
}

// metrics expects the values of families with the label receiver alone; NaN is absence.
func (b *testbed) metrics(when string, want map[*metric.Desc]string) {
	b.Helper()
	for desc, text := range want {
		got := "absent"
		if v, ok := b.sink.Value(desc, DefaultName); ok {
			got = fmt.Sprint(v)
		}
		if got != text {
			b.Errorf("%s: %s is %s, want %s", when, desc.Name, got, text)
		}
	}
}

func (b *testbed) malformed(m malformation) float64 {
	v, ok := b.sink.Value(metric.GNSSMalformed, DefaultName, string(m))
	if !ok {
		b.Errorf("no series of the malformed lines: %v", m)
	}
	return v
}
