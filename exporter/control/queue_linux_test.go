package control

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/tests/lab"
)

// TestSessionsUnderARealFullQueue fills a queue of 3 s at once, beside two sessions over real
// TCP: the one with a transfer lasts, at both ends, and so does the one that others' traffic met.
func TestSessionsUnderARealFullQueue(t *testing.T) {
	const (
		rate  = 5_000_000
		queue = 3 * rate / 8
		idle  = 8 * time.Second
	)
	link := lab.Link{Rate: rate, Delay: 10 * time.Millisecond, Queue: queue}
	l := lab.Start(t, lab.Options{Profile: lab.Profile{Name: "full queue", Forward: link, Reverse: link}, Seed: 1})
	o, ends := serveIn(t, l.Server)
	dialIn := func() (client *Client, responder *Conn) {
		err := l.Client.Do(func() (err error) {
			client, err = Dial(context.Background(), o)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client, <-ends
	}
	with, withFar := dialIn()
	without, withoutFar := dialIn()
	if _, err := with.Start(t.Context(), Transfer{ID: 1, Direction: sample.Forward, Plan: plan(), Idle: idle}); err != nil {
		t.Fatal(err)
	}
	flood(t, l, 2*queue)
	// The client's words come after the queue: it is empty when they are heard.
	if err := with.Sent(t.Context(), 1, 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := with.Wait(t.Context(), 1); err != nil {
		t.Errorf("with a transfer: %v", err)
	}
	for name, c := range map[string]interface{ Err() error }{"client": with, "responder": withFar, "client without a transfer": without, "responder without a transfer": withoutFar} {
		if err := c.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// serveIn is a played responder on a host of the lab: it starts and finishes one transfer.
func serveIn(t *testing.T, h *lab.Host) (ClientOptions, <-chan *Conn) {
	t.Helper()
	var listener net.Listener
	err := h.Do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(h.Addr4.String(), "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	id := newIdentity(t, time.Now().Add(time.Hour), h.Addr4.String())
	ends := make(chan *Conn, 2)
	stop := make(chan struct{})
	var sessions sync.WaitGroup
	server := &http.Server{ErrorLog: discard(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sessions.Add(1)
		defer sessions.Done()
		c, err := Accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		ends <- c
		tell(c, Message{Welcome: &Welcome{Version: Version}})
		if hear(c).Transfer != nil {
			tell(c, Message{Started: &Started{ID: 1}})
			hear(c)
			tell(c, finished())
		}
		select {
		case <-c.Done():
		case <-stop: // the client's good-bye may still be in the queue
		}
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(tls.NewListener(listener, ServerTLS(id.cert, nil))) }()
	t.Cleanup(func() {
		server.Close()
		close(stop)
		sessions.Wait()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return ClientOptions{Address: listener.Addr().String(), CAFile: id.certFile}, ends
}

// flood sends these octets to the server as fast as this host can.
func flood(t *testing.T, l *lab.Lab, octets int) {
	t.Helper()
	var from, to net.PacketConn
	err := errors.Join(
		l.Server.Do(func() (err error) {
			to, err = net.ListenPacket("udp4", net.JoinHostPort(l.Server.Addr4.String(), "0"))
			return err
		}),
		l.Client.Do(func() (err error) {
			from, err = net.ListenPacket("udp4", net.JoinHostPort(l.Client.Addr4.String(), "0"))
			return err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.Close() })
	defer from.Close()
	for packet := make([]byte, 1400); octets > 0; octets -= len(packet) {
		if _, err := from.WriteTo(packet, to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
}
