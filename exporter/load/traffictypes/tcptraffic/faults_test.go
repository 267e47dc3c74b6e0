package tcptraffic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/tests/remoteend"
)

// rawClient is the control connection of a client that sends what a test wants.
type rawClient struct {
	*loadcontrol.Client
	said chan *loadcontrol.TrafficMessage
}

func connect(t *testing.T, o loadsession.Options) (c *rawClient) {
	t.Helper()
	remoteend.Eventually(t, "the link is free", func() bool {
		c = tryConnect(t, o)
		return c != nil
	})
	return c
}

// tryConnect returns nil while the load server is busy.
func tryConnect(t *testing.T, o loadsession.Options) *rawClient {
	t.Helper()
	text, err := os.ReadFile(o.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.Fields(string(text))
	client, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{Address: o.LoadServer, Pin: o.Pin, Token: token[len(token)-1]})
	if err != nil {
		t.Fatal(err)
	}
	c := &rawClient{client, make(chan *loadcontrol.TrafficMessage, 10)}
	_, err = client.Open(t.Context(), loadcontrol.Open{Traffic: tcptraffic.Name, Bytes: 1 << 40, Duration: time.Hour, Run: "x"}, func(m *loadcontrol.TrafficMessage, _ []byte) error {
		if m.Name != "alive" { // every two seconds
			c.said <- m
		}
		return nil
	})
	if err != nil {
		_ = client.Close() // it was refused
		return nil
	}
	t.Cleanup(func() { _ = client.Close() })
	return c
}

// hear returns the content of the next message.
func (c *rawClient) hear(t *testing.T, name string) (body struct {
	Ports  []uint16
	Cookie []byte
	Error  string
	Reason string
	Detail string
	Flows  []tcptraffic.FlowEnd
},
) {
	t.Helper()
	select {
	case m := <-c.said:
		if err := json.Unmarshal(m.Body, &body); err != nil || m.Name != name {
			t.Fatalf("received %s %s, want %s", m.Name, m.Body, name)
		}
	case <-c.Done():
		t.Fatalf("waiting for %s: %v", name, c.Err())
	case <-time.After(remoteend.Timeout):
		t.Fatalf("no message %s", name)
	}
	return body
}

func (c *rawClient) say(t *testing.T, name string, body any) {
	t.Helper()
	if err := c.SendMessage(name, body); err != nil {
		t.Fatal(err)
	}
}

// request is the content of the message transfer.
func request(id uint16, p tcptraffic.Plan) any { return map[string]any{"id": id, "plan": p} }

// open opens the connection of a flow with a proof.
func open(t *testing.T, port uint16, proof []byte) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err == nil {
		_, err = c.Write(proof)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// ended reports whether the load server has closed a connection.
func ended(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(remoteend.Timeout))
	for b := make([]byte, 64<<10); ; {
		if _, err := c.Read(b); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

func TestConnectionsWithoutAProofAreResetAndTheOthersServe(t *testing.T) {
	remoteend.NothingLeft(t)
	c := connect(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}))
	p := plan(sample.Reverse, time.Second)
	p.Flows = append(p.Flows, tcptraffic.Flow{MessageBytes: 1000, Options: tcpsocket.Options{MSS: 500}})
	c.say(t, "transfer", request(1, p))
	at := c.hear(t, "listening")
	if len(at.Ports) != 2 || at.Ports[0] == at.Ports[1] {
		t.Fatalf("ports %v, want one for each MSS", at.Ports)
	}
	proof := func(index byte) []byte { return append(append([]byte(nil), at.Cookie...), index) }
	wrong := proof(0)
	wrong[3] ^= 1
	for what, bad := range map[string]net.Conn{
		"a wrong cookie":   open(t, at.Ports[0], wrong),
		"a wrong index":    open(t, at.Ports[0], proof(7)),
		"the other's port": open(t, at.Ports[0], proof(1)),
		"a cut cookie":     cutShort(t, at.Ports[0], proof(0)[:5]),
	} {
		if !ended(bad) {
			t.Errorf("a connection with %s stays open", what)
		}
	}
	first, closed := make([]net.Conn, 2), make(chan bool, 2)
	for i := range first {
		first[i] = open(t, at.Ports[0], proof(0))
		go func() { closed <- ended(first[i]) }()
	}
	if !<-closed {
		t.Error("both connections of one flow stay open")
	}
	other := open(t, at.Ports[1], proof(1))
	c.hear(t, "started")
	if _, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(at.Ports[0]))); err == nil {
		t.Error("the port accepts a late connection")
	}
	if !<-closed || !ended(other) {
		t.Error("the flows did not end")
	}
	if m := c.hear(t, "finished"); len(m.Flows) != 2 || m.Flows[0].Ended != tcptraffic.EndedTime || m.Flows[0].Payload == 0 || m.Flows[1].Payload == 0 {
		t.Errorf("finished %+v", m)
	}
}

// cutShort sends a part of a proof and closes its direction.
func cutShort(t *testing.T, port uint16, part []byte) net.Conn {
	t.Helper()
	c := open(t, port, part)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	return c
}

// More connections than flows and some others do not keep sockets, nor the client's connection out.
func TestFloodOfUnprovedConnectionsIsBounded(t *testing.T) {
	remoteend.NothingLeft(t)
	c := connect(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}))
	c.say(t, "transfer", request(1, plan(sample.Reverse, 200*time.Millisecond)))
	at := c.hear(t, "listening")
	closed := make(chan bool, 40)
	for range cap(closed) {
		silent := open(t, at.Ports[0], nil)
		go func() { closed <- ended(silent) }()
	}
	for range cap(closed) - 9 { // one flow, and eight others
		select {
		case ok := <-closed:
			if !ok {
				t.Error("a connection stays open")
			}
		case <-time.After(remoteend.Timeout):
			t.Fatal("more than 9 unproved connections stay open")
		}
	}
	if !ended(open(t, at.Ports[0], append(at.Cookie, 0))) {
		t.Error("the client's connection did not end")
	}
	c.hear(t, "started")
	if m := c.hear(t, "finished"); m.Error != "" || m.Flows[0].Payload == 0 {
		t.Errorf("finished: %+v", m)
	}
}

// The client may cancel before all connections have arrived.
func TestCanceledTransferWithoutConnectionsIsReported(t *testing.T) {
	c := connect(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}))
	c.say(t, "transfer", request(1, plan(sample.Forward, time.Second)))
	c.hear(t, "listening")
	c.say(t, "cancel", map[string]any{"id": 1})
	if m := c.hear(t, "finished"); !strings.Contains(m.Error, "1 of 1 connections") {
		t.Errorf("finished: %+v", m)
	}
}

func TestReceiverThatStopsReadingEndsTheTransfer(t *testing.T) {
	remoteend.NothingLeft(t)
	c := connect(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}))
	p := plan(sample.Reverse, 30*time.Second)
	p.Idle = 300 * time.Millisecond
	c.say(t, "transfer", request(1, p))
	at := c.hear(t, "listening")
	flow := open(t, at.Ports[0], append(at.Cookie, 0))
	c.hear(t, "started")
	if m := c.hear(t, "finished"); m.Flows[0].Ended != tcptraffic.EndedIdle || m.Flows[0].Payload == 0 {
		t.Errorf("finished %+v", m)
	}
	if !ended(flow) {
		t.Error("the connection stays open")
	}
}

func TestSenderThatStopsEndsTheTransfer(t *testing.T) {
	c := connect(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}))
	for id, end := range map[uint16]struct {
		how  func(*net.TCPConn)
		want tcptraffic.Ended
	}{
		1: {func(*net.TCPConn) {}, tcptraffic.EndedIdle},
		2: {func(c *net.TCPConn) { _ = c.CloseWrite() }, tcptraffic.EndedClosed},
		3: {func(c *net.TCPConn) { _, _ = c.SetLinger(0), c.Close() }, tcptraffic.EndedReset},
		4: {func(*net.TCPConn) { c.say(t, "cancel", map[string]any{"id": 4}) }, tcptraffic.EndedCanceled},
	} {
		p := plan(sample.Forward, 30*time.Second)
		p.Idle = 10 * time.Second
		if end.want == tcptraffic.EndedIdle {
			p.Idle = 300 * time.Millisecond
		}
		c.say(t, "transfer", request(id, p))
		at := c.hear(t, "listening")
		flow := open(t, at.Ports[0], append(at.Cookie, 0))
		c.hear(t, "started")
		if _, err := flow.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // so that the load server has read all before the connection ends
		end.how(flow)
		if m := c.hear(t, "finished"); m.Flows[0].Ended != end.want || m.Flows[0].Payload != 1000 {
			t.Errorf("%s: finished %+v", end.want, m.Flows[0])
		}
	}
}

// The end of the control connection closes the flows, and frees their ports.
func TestEndOfTheSessionEndsItsConnections(t *testing.T) {
	remoteend.NothingLeft(t)
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	for _, d := range sample.Directions() {
		c := connect(t, shared)
		c.say(t, "transfer", request(1, plan(d, 30*time.Second)))
		c.say(t, "transfer", request(2, plan(d, 30*time.Second)))
		at, waiting := c.hear(t, "listening"), c.hear(t, "listening")
		flow := open(t, at.Ports[0], append(at.Cookie, 0))
		_ = c.hear(t, "started")
		_ = c.Close() // it returns no error
		if d == sample.Forward {
			remoteend.Eventually(t, "the connection is closed", func() bool { _, err := flow.Write(make([]byte, 1000)); return err != nil })
		} else if !ended(flow) {
			t.Error("the connection stays open")
		}
		remoteend.Eventually(t, "the port is free", func() bool {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(waiting.Ports[0])))
			if err == nil {
				_ = l.Close()
			}
			return err == nil
		})
	}
}

// Each size of the announced segments needs a port of its own; without enough ports nothing stays open.
func TestMoreListenersThanPortsAreRefused(t *testing.T) {
	c := connect(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}))
	many := plan(sample.Forward, time.Second)
	for i := range tcptraffic.MaxFlows - 1 {
		many.Flows = append(many.Flows, tcptraffic.Flow{MessageBytes: 1000, Options: tcpsocket.Options{MSS: 500 + i}})
	}
	for id := range uint16(3) {
		c.say(t, "transfer", request(1+id, many))
		if m := c.hear(t, "refused"); m.Reason != "too_many" || !strings.Contains(m.Detail, "no port of") {
			t.Errorf("refused %+v", m)
		}
	}
	many.Flows = many.Flows[:15]
	c.say(t, "transfer", request(9, many))
	if at := c.hear(t, "listening"); len(at.Ports) != 15 {
		t.Errorf("%d ports", len(at.Ports))
	}
}

// The first message would leave long after the idle timeout.
func TestMessagesTooLargeForTheTokensRateAreRefused(t *testing.T) {
	c := connect(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "rate=1Mbit"))
	large := plan(sample.Reverse, time.Minute)
	large.Flows[0].MessageBytes = tcptraffic.MaxMessage
	c.say(t, "transfer", request(1, large))
	if m := c.hear(t, "refused"); m.Reason != "rate_limit" || !strings.Contains(m.Detail, "31s") {
		t.Errorf("refused %+v", m)
	}
	large.Idle = 40 * time.Second
	c.say(t, "transfer", request(2, large))
	c.hear(t, "listening")
}

// Two transfers may have as many samples as is possible, not three.
func TestSamplesOfAllTransfersAreLimited(t *testing.T) {
	c := connect(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}))
	most := plan(sample.Forward, 65*time.Second)
	most.Interval = time.Millisecond
	for i := range uint16(2) {
		c.say(t, "transfer", request(1+i, most))
		c.hear(t, "listening")
	}
	c.say(t, "transfer", request(3, most))
	if m := c.hear(t, "refused"); m.Reason != "bad_request" || !strings.Contains(m.Detail, "samples") {
		t.Errorf("refused %+v", m)
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	c := connect(t, shared)
	many := plan(sample.Forward, time.Second)
	many.Flows = make([]tcptraffic.Flow, tcptraffic.MaxFlows+1)
	long := plan(sample.Forward, 10*time.Hour)
	c.say(t, "transfer", request(1, many))
	if m := c.hear(t, "refused"); m.Reason != "bad_request" || !strings.Contains(m.Detail, "65 flows") {
		t.Errorf("refused %+v", m)
	}
	c.say(t, "transfer", request(2, long))
	if m := c.hear(t, "refused"); !strings.Contains(m.Detail, "samples") {
		t.Errorf("refused %+v", m)
	}
	for i := range uint16(9) { // more than the limit at one time
		c.say(t, "transfer", request(10+i, plan(sample.Forward, time.Second)))
	}
	said := map[string]int{}
	for range 9 {
		m := <-c.said
		said[m.Name]++
	}
	if said["listening"] != 8 || said["refused"] != 1 {
		t.Errorf("replies %v, want the ninth refused", said)
	}
	c.say(t, "transfer", request(10, plan(sample.Forward, time.Second))) // a used ID ends the session
	select {
	case <-c.Done():
	case <-time.After(remoteend.Timeout):
		t.Error("a used ID does not end the session")
	}
	if r := remoteend.Refusal(t, c.Err()); r.Reason != loadcontrol.BadRequest {
		t.Error(r)
	}
}
