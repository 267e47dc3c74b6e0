package chrony

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"sync"

	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/instant"
)

// fault is a fault of the fake chronyd.
type fault int

const (
	correct fault = iota
	hanging
	truncating
	oversizing
	missequencing
	wrongVersion
	wrongCommand
	wrongReply
	refusing
	babbling // random bytes
	flooding
	implausibleLeap
	late // also replies to the previous request
)

// daemon is a fake chronyd. Its dispersion grows as that of a real one.
type daemon struct {
	mu         sync.Mutex
	clock      *clocktest.Clock
	fault      fault
	down       bool // the port is closed
	noSources  bool // replies to tracking only
	leap       uint16
	stratum    uint16
	refID      uint32
	updated    instant.Time
	correction float64
	lastOffset float64
	skew       float64 // ppm
	residual   float64 // ppm
	delay      float64
	dispersion float64 // at the update
	interval   float64
	poll       int16
	previous   []byte // the previous reply
	received   int
	random     *rand.Rand
}

func newDaemon(c *clocktest.Clock) *daemon {
	return &daemon{
		clock: c, stratum: 1, refID: 0x54455354, updated: c.Read().Wall,
		skew: 2, residual: -0.5, delay: 1e-3, dispersion: 1e-4, interval: 16, poll: 4,
		random: rand.New(rand.NewPCG(1, 2)),
	}
}

// set changes the daemon under its lock.
func (d *daemon) set(f func(d *daemon)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *daemon) requests() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.received
}

// update is an update from the source, now.
func (d *daemon) update(offset float64) {
	d.set(func(d *daemon) { d.updated, d.lastOffset = d.clock.Read().Wall, offset })
}

// dial is for Options.dial.
func (d *daemon) dial(address) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	go d.serve(there)
	return here, nil
}

// serve replies until the connection is closed.
func (d *daemon) serve(conn net.Conn) {
	defer conn.Close()
	request := make([]byte, 1024)
	for {
		n, err := conn.Read(request)
		if err != nil {
			return
		}
		for _, reply := range d.datagrams(request[:n]) {
			if _, err := conn.Write(reply); err != nil {
				return
			}
		}
	}
}

// datagrams are the datagrams sent for one request.
func (d *daemon) datagrams(request []byte) [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.received++
	reply := d.reply(request)
	switch d.fault {
	case correct:
	case hanging:
		return nil
	case truncating:
		reply = reply[:len(reply)-1]
	case oversizing:
		reply = append(reply, make([]byte, 1900)...)
	case missequencing:
		reply[19]++
	case wrongVersion:
		reply[0] = 5
	case wrongCommand:
		reply[5]++
	case wrongReply:
		reply[7]++
	case refusing:
		reply[9] = 2
		reply = reply[:replyHeadBytes]
	case babbling:
		for i := range reply {
			reply[i] = byte(d.random.Uint32())
		}
	case flooding:
		reply[19]++
		return repeat(reply, 10*maxDiscards)
	case implausibleLeap:
		if len(reply) == replyHeadBytes+76 {
			reply[replyHeadBytes+27] = 9
		}
	case late:
		both := [][]byte{d.previous, reply}
		d.previous = reply
		return both
	}
	return [][]byte{reply}
}

func repeat(b []byte, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = b
	}
	return all
}

// replyHead is the head of the reply to a request, with space for the rest.
func replyHead(request []byte) (b []byte, command uint16) {
	command = binary.BigEndian.Uint16(request[4:])
	want := replies[command]
	b = make([]byte, replyHeadBytes, max(want.bytes, replyHeadBytes))
	b[0], b[1] = protocolVersion, typeReply
	binary.BigEndian.PutUint16(b[4:], command)
	binary.BigEndian.PutUint16(b[6:], uint16(want.kind))
	copy(b[16:20], request[8:12])
	return b, command
}

// reply is a correct reply of chronyd.
func (d *daemon) reply(request []byte) []byte {
	b, command := replyHead(request)
	put := func(v any) { b, _ = binary.Append(b, binary.BigEndian, v) }
	switch command {
	case commandTracking:
		d.appendTracking(put)
	case commandSources:
		if d.noSources {
			b[9] = 1
			return b
		}
		put(uint32(2))
	case commandSourceData:
		index := binary.BigEndian.Uint32(request[20:])
		put([20]byte{})
		put([2]int16{d.poll + int16(1-index)*3, 1}) // poll of source 1 is d.poll
		put([4]uint16{uint16(1-index) * 4})         // source 1 is the selected one
		put([4]uint32{})
	}
	return b
}

func (d *daemon) appendTracking(put func(any)) {
	age := max(0, d.clock.Read().Wall.Sub(d.updated).Seconds())
	put(d.refID)
	put([20]byte{})
	put([2]uint16{d.stratum, d.leap})
	ns := uint64(d.updated)
	put([3]uint32{uint32(ns / 1e9 >> 32), uint32(ns / 1e9), uint32(ns % 1e9)})
	for _, f := range []float64{
		d.correction, d.lastOffset, 0, -12.5, d.residual, d.skew, d.delay,
		d.dispersion + age*(d.skew+math.Abs(d.residual)+1)*1e-6, d.interval,
	} {
		put(wireFloat(f))
	}
}

// wireFloat is chrony's 32-bit float (util.c): 7 bits of exponent, 25 bits of signed coefficient.
func wireFloat(x float64) uint32 {
	if x == 0 {
		return 0
	}
	fraction, exponent := math.Frexp(x)
	coefficient := int32(math.Round(fraction * (1 << 24)))
	exponent++
	return uint32(exponent)<<25 | uint32(coefficient)&(1<<25-1)
}
