package metric

// Label names. Label values are names from the configuration or members of a fixed set; never an address, a port, a
// session or a sequence number.
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
	QuantileL = "quantile_rank"
	triggerL  = "trigger"
	listenerL = "listener"
	// Zone is the label of a time zone.
	Zone = "zone"
)

var (
	perProbe     = []string{Path, Probe}
	perDirection = []string{Path, Probe, Direction}
	perReason    = []string{Path, Probe, ReasonL}
	perVoice     = []string{Path, Probe, Direction, CodecL, ModelL, BufferL}
)

// Each classic bucket is a series per path, so there are few: they allow aggregation over paths and time in servers
// without native histograms. The quantiles of single paths are gauges. No bound is a whole number: Prometheus 3 rewrites
// le="1" to le="1.0", and a rule that names a bound must match both.

// delayBuckets range from the delays of a LAN to those of a congested long path.
func delayBuckets() []float64 {
	return []float64{0.001, 0.005, 0.02, 0.05, 0.1, 0.3, 1.25}
}

// loadedBuckets reach the tens of seconds of a saturated cellular link (Woo 2010, figure 5.3).
func loadedBuckets() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.25, 2.5, 5.5, 20.5}
}

func variationBuckets() []float64 {
	return []float64{0.001, 0.005, 0.02, 0.1}
}

func latenessBuckets() []float64 {
	return []float64{0.001, 0.01}
}

// hostBuckets are finer, since their histograms exist once per host.
func hostBuckets() []float64 {
	return []float64{0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25}
}

func burstBuckets() []float64 {
	return []float64{1.5, 5.5}
}

// Family completes the descriptor of a family: a Desc with Slim that is made without it is not in profile Slim.
func Family(d Desc) *Desc {
	d.derive()
	return &d
}
