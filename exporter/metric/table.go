package metric

import (
	"cmp"
	"slices"
)

// Label names. Their values are names from the configuration or members of a
// fixed set; never an address, a port, a session or a sequence number.
const (
	Path      = "path"
	Probe     = "probe"
	Direction = "direction"
	ReasonL   = "reason"
	originL   = "origin"
	EventL    = "event"
	ResultL   = "result"
	CodecL    = "codec"
	ModelL    = "model"
	BufferL   = "buffer"
	ClockL    = "clock"
	QuantileL = "q"
	triggerL  = "trigger"
	listenerL = "listener"
)

var (
	perProbe     = []string{Path, Probe}
	perDirection = []string{Path, Probe, Direction}
	perReason    = []string{Path, Probe, ReasonL}
	perVoice     = []string{Path, Probe, Direction, CodecL, ModelL, BufferL}
)

// delayBuckets span a LAN's microseconds to the tens of seconds of a saturated
// cellular link (Woo 2010, figure 5.3). No bound is a whole number: Prometheus 3
// rewrites le="1" to le="1.0", and a rule that names a bound must match both.
func delayBuckets() []float64 {
	return []float64{
		0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.0125, 0.0175, 0.025, 0.035, 0.05, 0.075,
		0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.25, 2.5, 5.5, 10.5, 20.5, 30.5, 60.5,
	}
}

func variationBuckets() []float64 {
	return []float64{0.00001, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.5, 5.5, 20.5}
}

func signedVariationBuckets() []float64 {
	return []float64{-0.5, -0.1, -0.05, -0.02, -0.01, -0.005, -0.001, -0.0005, -0.0001, 0, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5}
}

func latenessBuckets() []float64 {
	return []float64{0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25}
}

func burstBuckets() []float64 {
	return []float64{1.5, 2.5, 3.5, 5.5, 10.5, 20.5, 50.5, 100.5, 1000.5}
}

// Group is a heading of the documentation and its families, by name.
type Group struct {
	Title string
	Descs []*Desc
}

// The groups. Each family is in the one that its declaration adds it to.
var (
	probeGroup     = &Group{Title: "What a probe says of itself"}
	packetGroup    = &Group{Title: "Packets"}
	delayGroup     = &Group{Title: "Delay"}
	voiceGroup     = &Group{Title: "Voice"}
	runGroup       = &Group{Title: "Runs of heavy tests"}
	loadGroup      = &Group{Title: "Link under load"}
	matrixGroup    = &Group{Title: "Packet size by packet rate"}
	capacityGroup  = &Group{Title: "Capacity"}
	clockGroup     = &Group{Title: "Clock"}
	pulseGroup     = &Group{Title: "Pulse and receiver"}
	responderGroup = &Group{Title: "Responder"}
	selfGroup      = &Group{Title: "Self"}
)

// add declares a family of the group.
func (g *Group) add(d Desc) *Desc {
	at, _ := slices.BinarySearchFunc(g.Descs, d.Name, func(one *Desc, name string) int { return cmp.Compare(one.Name, name) })
	g.Descs = slices.Insert(g.Descs, at, &d)
	return &d
}

// Groups lists every family, in the order of the documentation.
func Groups() []Group {
	return []Group{
		*probeGroup, *packetGroup, *delayGroup, *voiceGroup, *runGroup, *loadGroup,
		*matrixGroup, *capacityGroup, *clockGroup, *pulseGroup, *responderGroup, *selfGroup,
	}
}
