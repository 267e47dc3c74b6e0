package main

import (
	"encoding/binary"
	"math"
	"net"
	"os"
	"runtime"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

const (
	// flushEvery is how often logs are written out.
	flushEvery = 250 * time.Millisecond
	// trackEvery is the time between two pairs of the track.
	trackEvery = 5 * time.Millisecond
	// widestSample is the widest gap of a reading that is fed to chronyd.
	widestSample = 150 * time.Microsecond
)

// keepTrack logs what the clock says at which reading of the counter. The thread is
// its own: a pair should not wait for a goroutine.
func keepTrack(log *os.File) {
	runtime.LockOSThread()
	var buffer []byte
	last := time.Now()
	for {
		time.Sleep(trackEvery)
		counter, at, gap := truth.Read()
		p := truth.Pair{Counter: counter, Clock: at, Gap: uint32(min(gap, math.MaxUint32))}
		buffer = p.AppendTo(buffer)
		if time.Since(last) >= flushEvery {
			last = time.Now()
			if _, err := log.Write(buffer); err != nil {
				return // the host sees it: the track ends
			}
			buffer = buffer[:0]
		}
	}
}

// feeder is a source of time until stop is closed.
type feeder struct{ stop, done chan struct{} }

func (c *console) feed(f record.Feed) error {
	c.unfeed(f.Name)
	r := &feeder{stop: make(chan struct{}), done: make(chan struct{})}
	c.mu.Lock()
	c.feeders[f.Name] = r
	c.mu.Unlock()
	go r.run(f, c.boot.Line)
	return nil
}

func (c *console) unfeed(name string) {
	c.mu.Lock()
	r := c.feeders[name]
	delete(c.feeders, name)
	c.mu.Unlock()
	if r != nil {
		close(r.stop)
		<-r.done
	}
}

func (r *feeder) run(f record.Feed, line truth.Line) {
	defer close(r.done)
	tick := time.NewTicker(f.Every)
	defer tick.Stop()
	widest := uint64(widestSample.Seconds() * line.Hertz)
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
		}
		counter, at, gap := truth.Read()
		if gap > widest {
			continue
		}
		conn, err := net.Dial("unixgram", f.Socket)
		if err != nil {
			continue // chronyd is not there, or not yet
		}
		_, _ = conn.Write(sockSample(at, line.At(counter).Add(f.Bias).Sub(at), f.Leap))
		_ = conn.Close()
	}
}

// sockSample is chrony 4's struct sock_sample (refclock_sock.c): at the system
// time at, the source was ahead by offset.
func sockSample(at instant.Time, offset time.Duration, leap uint32) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(at/1e9))
	b = binary.NativeEndian.AppendUint64(b, uint64(at%1e9/1e3))
	b = binary.NativeEndian.AppendUint64(b, math.Float64bits(offset.Seconds()))
	for _, v := range []uint32{0, leap, 0, 0x534f434b} { // pulse, leap, pad, magic
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}
