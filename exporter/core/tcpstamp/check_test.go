package tcpstamp

import "testing"

func TestChecksRejectWhatNoEndCollects(t *testing.T) {
	sent := []Sent{{Offset: Grid}, {Offset: 2 * Grid, First: 5, Last: 6, Transmissions: 2}}
	received := []Received{{Offset: Grid, At: 5, Early: 3}, {Offset: 3 * Grid}}
	acks := []Ack{{Burst: 1, Offset: 10, At: 5}, {Burst: 1, Offset: 20, At: 6}, {Burst: 2, Offset: 30, At: 7}}
	const payload = 4 * Grid
	if CheckSent(sent, payload) != nil || CheckReceived(received, payload) != nil || CheckAcks(acks, payload) != nil {
		t.Fatal("good records were rejected")
	}
	for i, change := range []func(x *Sent){
		func(x *Sent) { x.Offset = Grid },
		func(x *Sent) { x.Offset++ },
		func(x *Sent) { x.Offset = 5 * Grid },
		func(x *Sent) { x.Transmissions = 0 },
		func(x *Sent) { x.Transmissions = -1 },
		func(x *Sent) { x.Last = 0 },
		func(x *Sent) { x.AckedEarly = -1 },
		func(x *Sent) { x.Acked = -1 },
	} {
		bad := append([]Sent{}, sent...)
		if change(&bad[1]); CheckSent(bad, payload) == nil {
			t.Errorf("sent %d was accepted: %+v", i, bad[1])
		}
	}
	for i, change := range []func(x *Received){
		func(x *Received) { x.Offset = -Grid },
		func(x *Received) { x.Early = -1 },
		func(x *Received) { x.Doubt = -1 },
	} {
		bad := append([]Received{}, received...)
		if change(&bad[1]); CheckReceived(bad, payload) == nil {
			t.Errorf("received %d was accepted: %+v", i, bad[1])
		}
	}
	for i, change := range []func(x *Ack){
		func(x *Ack) { x.Burst = 0 },
		func(x *Ack) { x.Burst = MaxBursts },
		func(x *Ack) { x.Offset = 10 },
		func(x *Ack) { x.Offset = payload + 1 },
		func(x *Ack) { x.At = 0 },
		func(x *Ack) { x.Early = -1 },
	} {
		bad := append([]Ack{}, acks...)
		if change(&bad[1]); CheckAcks(bad, payload) == nil {
			t.Errorf("ack %d was accepted: %+v", i, bad[1])
		}
	}
	many := make([]Sent, MaxSent+1)
	for i := range many {
		many[i].Offset = int64(i+1) * Grid
	}
	if CheckSent(many[1:], 1<<40) != nil || CheckSent(many, 1<<40) == nil {
		t.Errorf("the limit is not %d samples", MaxSent)
	}
	arrived := make([]Received, MaxReceived+1)
	for i := range arrived {
		arrived[i].Offset = int64(i+1) * Grid
	}
	if CheckReceived(arrived[1:], 1<<40) != nil || CheckReceived(arrived, 1<<40) == nil {
		t.Errorf("the limit is not %d samples", MaxReceived)
	}
	if (&Handshake{PeerScale: -2}).Check() == nil || (&Handshake{MSS: -1}).Check() == nil || (&Handshake{PeerScale: -1}).Check() != nil {
		t.Error("a negative value was accepted, or no window scale was rejected")
	}
}
