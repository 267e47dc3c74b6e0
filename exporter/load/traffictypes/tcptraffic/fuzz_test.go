package tcptraffic

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/net/tcpsocket"
)

func validPlan() Plan {
	return Plan{
		Direction: sample.Reverse, Flows: []Flow{{MessageBytes: 1}, {MessageBytes: MaxMessage}}, Duration: time.Second, Most: 1,
		Interval: 100 * time.Millisecond, Idle: time.Second,
	}
}

func TestPlansOutOfRangeAreErrors(t *testing.T) {
	for i, change := range []func(*Plan){
		func(p *Plan) { p.Direction = 2 },
		func(p *Plan) { p.Flows = nil },
		func(p *Plan) { p.Flows = make([]Flow, MaxFlows+1) },
		func(p *Plan) { p.Flows[0].MessageBytes = 0 },
		func(p *Plan) { p.Flows[0].MessageBytes = MaxMessage + 1 },
		func(p *Plan) { p.Flows[1].MessageInterval = -1 },
		func(p *Plan) { p.Flows[0].MessageInterval = MaxInterval + 1 },
		func(p *Plan) { p.Flows[1].Options = tcpsocket.Options{DSCP: 64} },
		func(p *Plan) { p.Duration = 0 },
		func(p *Plan) { p.Duration = MaxDuration + 1 },
		func(p *Plan) { p.Bytes = -1 },
		func(p *Plan) { p.Most = 0 },
		func(p *Plan) { p.Interval = 0 },
		func(p *Plan) { p.TraceFor = time.Second },
		func(p *Plan) { p.TraceFor, p.TraceInterval = -1, time.Second },
		func(p *Plan) { p.Idle = MaxIdle + 1 },
		func(p *Plan) { p.Duration, p.Interval = MaxDuration, MinInterval },
	} {
		p := validPlan()
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&p); p.Check() == nil {
			t.Errorf("plan %d is accepted: %+v", i, p)
		}
	}
}

// records returns a valid message finished and its data.
func records(p *Plan) ([]byte, []byte) {
	m := finished{ID: 1}
	for range p.Flows {
		f := FlowEnd{Ended: EndedTime, Payload: 5, First: 1, Last: 2, CongestionControl: "cubic", Samples: []Sample{{At: 0}, {At: 5, Payload: 5, Sent: 7}}}
		f.Count, f.Final.Sent = len(f.Samples), 7
		m.Flows = append(m.Flows, f)
	}
	b, _ := json.Marshal(m) // it has no other types
	return b, appendRecords(nil, m.Flows)
}

func TestRecordsArriveAsTheyWere(t *testing.T) {
	p := validPlan()
	body, data := records(&p)
	m, err := heard(&p, body, data)
	if err != nil || len(m.Flows) != 2 || m.Flows[1].Final.Sent != 7 || m.Flows[1].Samples[1].Sent != 7 || m.Flows[0].Samples[1].At != 5 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Each false value of a record is an error, which names the flow.
func TestFalseValuesOfRecordsAreErrors(t *testing.T) {
	for i, lie := range []func(f *FlowEnd){
		func(f *FlowEnd) { f.Final.Acked = -1 },
		func(f *FlowEnd) { f.Final.Sent = maxBytes + 1 },
		func(f *FlowEnd) { f.Final.Retransmitted = f.Final.Sent + 1 },
		func(f *FlowEnd) { f.Final.DeliveredCE = 1 },
		func(f *FlowEnd) { f.Final.ReceivedCE = 1 },
		func(f *FlowEnd) { f.Final.RTO = -1 },
		func(f *FlowEnd) { f.Final.MinRTT = 24 * time.Hour },
		func(f *FlowEnd) { f.Last = 24 * time.Hour },
		func(f *FlowEnd) { f.First = f.Last + 1 },
		func(f *FlowEnd) { f.Payload = 4 }, // less than the samples
		func(f *FlowEnd) { f.Buffer.Effective = -1 },
		func(f *FlowEnd) { f.CongestionControl = "a-name-that-is-too-long" },
		func(f *FlowEnd) { f.Samples[1].At = 0 },
		func(f *FlowEnd) { f.Samples[1].At = 24 * time.Hour },
		func(f *FlowEnd) { f.Samples[0].Payload = 6 },
		func(f *FlowEnd) { f.Samples[1].Outstanding = -1 },
		func(f *FlowEnd) { f.Samples[1].SendBuffer = math.MaxInt64 },
		func(f *FlowEnd) { f.Samples[1].RTT = 24 * time.Hour },
		func(f *FlowEnd) { f.Samples[1].Busy = math.MinInt64 },
		func(f *FlowEnd) { f.Samples[1].RwndLimited = math.MaxInt64 },
	} {
		p := validPlan()
		body, data := records(&p)
		m, err := heard(&p, body, data)
		if err != nil {
			t.Fatal(err)
		}
		lie(&m.Flows[1])
		body, _ = json.Marshal(m) // it has no other types
		if _, err := heard(&p, body, appendRecords(nil, m.Flows)); !errors.Is(err, loadcontrol.ErrProtocol) || !strings.Contains(err.Error(), "flow 1: ") {
			t.Errorf("lie %d: %v", i, err)
		}
	}
}

// stampedRecords returns a valid message finished of a plan with stamps, and its data.
func stampedRecords(p *Plan) (finished, []byte) {
	p.Stamps = true
	m := finished{ID: 1}
	for range p.Flows {
		f := FlowEnd{Ended: EndedTime, Payload: 3 * tcpstamp.Grid, First: 1, Last: 2}
		f.Sent = []tcpstamp.Sent{{Offset: tcpstamp.Grid, Written: 1, Scheduled: 2, First: 3, Last: 3, Acked: 4, Transmissions: 1}, {Offset: 3 * tcpstamp.Grid}}
		f.Acks = []tcpstamp.Ack{{Offset: 5, At: 1}, {Offset: 9, At: 2}}
		f.Handshake = tcpstamp.Handshake{MSS: 1460, PeerScale: 7, OwnScale: -1}
		f.Stamped = &Stamped{Sent: len(f.Sent), Acks: len(f.Acks)}
		m.Flows = append(m.Flows, f)
	}
	return m, appendRecords(nil, m.Flows)
}

// Records of stamps arrive as they were, and each false one is an error, which names the flow.
func TestFalseStampsAreErrors(t *testing.T) {
	for i, lie := range []func(f *FlowEnd){
		func(*FlowEnd) {},
		func(f *FlowEnd) { f.Sent[1].Offset = f.Payload + tcpstamp.Grid },
		func(f *FlowEnd) { f.Sent[1].Offset = tcpstamp.Grid },
		func(f *FlowEnd) { f.Sent[0].Transmissions = -1 },
		func(f *FlowEnd) { f.Sent[0].AckedEarly = -1 },
		func(f *FlowEnd) { f.Acks[1].Offset = f.Payload + 1 },
		func(f *FlowEnd) { f.Acks[0].Burst = tcpstamp.MaxBursts },
		func(f *FlowEnd) { f.Handshake.OwnScale = -2 },
		func(f *FlowEnd) { f.Stamped.Sent++ },
		func(f *FlowEnd) { f.Stamped.Sent-- },
		func(f *FlowEnd) { f.Stamped.Sent = -1 },
		func(f *FlowEnd) { f.Stamped.Sent = math.MaxInt },
		func(f *FlowEnd) { f.Stamped.Acks = 1 << 20 },
		func(f *FlowEnd) { f.Stamped = nil },
		func(f *FlowEnd) { // those of the other end
			f.Sent, f.Acks, f.Received = nil, nil, []tcpstamp.Received{{Offset: tcpstamp.Grid}}
			*f.Stamped = Stamped{Received: 1}
		},
	} {
		p := validPlan()
		m, data := stampedRecords(&p)
		if lie(&m.Flows[1]); m.Flows[1].Stamped != nil {
			data = appendRecords(nil, m.Flows)
		}
		body, _ := json.Marshal(m) // it has no other types
		got, err := heard(&p, body, data)
		if i == 0 {
			if f := got.Flows[1]; err != nil || !slices.Equal(f.Sent, m.Flows[1].Sent) || !slices.Equal(f.Acks, m.Flows[1].Acks) || f.Handshake != m.Flows[1].Handshake {
				t.Errorf("%+v, %v", got, err)
			}
			continue
		}
		if !errors.Is(err, loadcontrol.ErrProtocol) {
			t.Errorf("lie %d: %v", i, err)
		}
	}
	p := validPlan()
	m, data := stampedRecords(&p)
	body, _ := json.Marshal(m) // it has no other types
	p.Stamps = false
	if _, err := heard(&p, body, data); !errors.Is(err, loadcontrol.ErrProtocol) {
		t.Errorf("stamps of a plan without them: %v", err)
	}
}

func heard(p *Plan, body, data []byte) (m finished, err error) {
	say := loadcontrol.TrafficMessage{Name: sayFinished, Body: body}
	if err := say.Into(&m); err != nil {
		return m, err
	}
	return m, m.parse(p, data)
}

// FuzzFinished: no message and no data of a load server cause a fault, and accepted values are in their ranges.
func FuzzFinished(f *testing.F) {
	p := validPlan()
	body, data := records(&p)
	f.Add(body, data)
	f.Add([]byte(`{"id":1,"error":"x"}`), []byte(nil))
	m, data := stampedRecords(&p)
	body, _ = json.Marshal(m) // it has no other types
	f.Add(body, data)
	f.Fuzz(func(t *testing.T, body, data []byte) {
		m, err := heard(&p, body, data)
		if err != nil {
			if !errors.Is(err, loadcontrol.ErrProtocol) {
				t.Errorf("error %v is not of the protocol", err)
			}
			return
		}
		for i := range m.Flows {
			if e := &m.Flows[i]; len(e.Sent) > tcpstamp.MaxSent || e.Stamped == nil && len(e.Sent)+len(e.Received)+len(e.Acks) > 0 {
				t.Errorf("accepted %d, %d and %d stamps", len(e.Sent), len(e.Received), len(e.Acks))
			}
			if e := &m.Flows[i]; e.Payload < 0 || e.Last < e.First || len(e.Samples) != e.Count || e.Count > p.samples() || e.Final.SentIPBytes(true) < 0 {
				t.Errorf("accepted %+v", e)
			}
		}
	})
}

// FuzzPlan: no plan of a client causes a fault, and accepted ones are within the limits.
func FuzzPlan(f *testing.F) {
	b, err := json.Marshal(start{1, validPlan()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, body []byte) {
		var m start
		say := loadcontrol.TrafficMessage{Name: sayTransfer, Body: body}
		if say.Into(&m) != nil || m.Plan.Check() != nil {
			return
		}
		if n := m.Plan.samples() * len(m.Plan.Flows); n <= 0 || n > MaxSamples || len(m.Plan.Flows) > MaxFlows {
			t.Errorf("accepted %+v with %d samples", m.Plan, n)
		}
	})
}

// FuzzDeliver: no sequence of two messages of a load server causes a fault or blocks, and each error is of the protocol.
func FuzzDeliver(f *testing.F) {
	p := validPlan()
	body, data := records(&p)
	opened, _ := json.Marshal(listening{ID: 1, Ports: []uint16{1, 2}, Cookie: make([]byte, cookieBytes)}) // it has no other types
	f.Add(sayListening, opened, sayStarted, []byte(`{"id":1}`), []byte(nil))
	f.Add(sayStarted, []byte(`{"id":1}`), sayFinished, body, data)
	f.Add(sayListening, opened, sayFinished, []byte(`{"id":1,"error":"x"}`), []byte(nil))
	f.Add(sayRefused, []byte(`{"id":1,"reason":"busy"}`), sayRefused, []byte(`{"id":0}`), []byte(nil))
	f.Fuzz(func(t *testing.T, name string, body []byte, next string, more, data []byte) {
		s := &Session{pending: map[uint16]*pending{}}
		x := s.register(&p)
		for _, m := range []loadcontrol.TrafficMessage{{Name: name, Body: body}, {Name: next, Body: more}} {
			if err := s.deliver(&m, data); err != nil && !errors.Is(err, loadcontrol.ErrProtocol) {
				t.Errorf("%s: error %v is not of the protocol", m.Name, err)
			}
		}
		if len(x.replies) > 2 || len(x.replies) == 0 && s.pending[1] == nil {
			t.Errorf("%d replies", len(x.replies))
		}
	})
}
