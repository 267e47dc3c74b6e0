package metric

// Label names. Their values are names from the configuration or members of a
// fixed set; never an address, a port, a session or a sequence number.
const (
	Path      = "path"
	Probe     = "probe"
	Direction = "direction"
	ReasonL   = "reason"
	OriginL   = "origin"
	EventL    = "event"
	ResultL   = "result"
	CodecL    = "codec"
	ModelL    = "model"
	BufferL   = "buffer"
	ClockL    = "clock"
	QuantileL = "q"
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
