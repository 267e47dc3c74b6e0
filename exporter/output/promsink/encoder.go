package promsink

import (
	"math"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"oneway.example/exporter/core/metric"
)

// encoder appends protobuf messages of Prometheus (io.prometheus.client, metrics.proto) to a reused buffer: a scrape of a
// thousand paths has about ten thousand messages, and allocates none of them.
type encoder struct{ data []byte }

// Fields of metrics.proto, by message.
const (
	familyName, familyHelp, familyType, familyMetric = 1, 2, 3, 4

	metricLabel, metricGauge, metricCounter, metricHistogram = 1, 2, 3, 7

	labelName, labelValue = 1, 2

	// Of Gauge and Counter.
	numberValue, counterCreated = 1, 3

	histogramCount, histogramSum, histogramBucket           = 1, 2, 3
	histogramSchema, histogramThreshold, histogramZeroCount = 5, 6, 7
	negativeSpan, negativeDelta                             = 9, 10
	positiveSpan, positiveDelta                             = 12, 13
	histogramCreated, histogramExemplars                    = 15, 16

	bucketCount, bucketBound, bucketExemplar = 1, 2, 3

	spanOffset, spanLength = 1, 2
)

// begin starts a message that is the value of a field; end completes it.
func (e *encoder) begin(field protowire.Number) (at int) {
	e.data = append(protowire.AppendTag(e.data, field, protowire.BytesType), 0)
	return len(e.data)
}

func (e *encoder) end(at int) {
	n := len(e.data) - at
	if more := protowire.SizeVarint(uint64(n)) - 1; more > 0 {
		for range more {
			e.data = append(e.data, 0)
		}
		copy(e.data[at+more:], e.data[at:at+n])
	}
	protowire.AppendVarint(e.data[:at-1], uint64(n))
}

func (e *encoder) length(n int) { e.data = protowire.AppendVarint(e.data, uint64(n)) }

func (e *encoder) text(field protowire.Number, s string) {
	e.data = protowire.AppendString(protowire.AppendTag(e.data, field, protowire.BytesType), s)
}

func (e *encoder) float(field protowire.Number, v float64) {
	e.data = protowire.AppendFixed64(protowire.AppendTag(e.data, field, protowire.Fixed64Type), math.Float64bits(v))
}

func (e *encoder) unsigned(field protowire.Number, v uint64) {
	e.data = protowire.AppendVarint(protowire.AppendTag(e.data, field, protowire.VarintType), v)
}

func (e *encoder) signed(field protowire.Number, v int64) {
	e.unsigned(field, protowire.EncodeZigZag(v))
}

// message appends a message of another package.
func (e *encoder) message(field protowire.Number, m proto.Message) {
	at := e.begin(field)
	e.data, _ = proto.MarshalOptions{}.MarshalAppend(e.data, m) // no error: the message has no required fields
	e.end(at)
}

// family starts the message of a family.
func (e *encoder) family(d *metric.Desc) {
	kind := map[metric.Kind]dto.MetricType{
		metric.Counter: dto.MetricType_COUNTER, metric.Gauge: dto.MetricType_GAUGE, metric.Histogram: dto.MetricType_HISTOGRAM,
	}[d.Kind]
	e.text(familyName, d.Name)
	e.text(familyHelp, d.Help)
	e.unsigned(familyType, uint64(kind))
}

// series appends a series as it was when the scrape began, if it is present and exported to this scrape.
func (e *encoder) series(one *series, scrape uint32, native bool) {
	if native && one.desc.ClassicOnly {
		return
	}
	one.read(scrape, func(number float64, hist *histogram) {
		classic := len(one.desc.Buckets) > 0 && !one.sink.options.NoClassic
		// A histogram without buckets is not exported, unless the options exclude classic buckets.
		if hist == nil && math.IsNaN(number) || hist != nil && !native && len(one.desc.Buckets) == 0 {
			return
		}
		at := e.begin(familyMetric)
		for _, l := range one.labels {
			e.data = append(e.data, l.encoded...)
		}
		switch one.desc.Kind {
		case metric.Gauge:
			e.number(metricGauge, number, nil)
		case metric.Counter:
			e.number(metricCounter, number, one.created)
		case metric.Histogram:
			e.histogram(hist, one, classic, native)
		}
		e.end(at)
	})
}

// number appends the value of a gauge or counter.
func (e *encoder) number(field protowire.Number, v float64, created *timestamppb.Timestamp) {
	at := e.begin(field)
	e.float(numberValue, v)
	if created != nil {
		e.message(counterCreated, created)
	}
	e.end(at)
}

// appendPair appends a label of a series, encoded as a field of its message.
func appendPair(to []byte, name, value string) []byte {
	e := encoder{to}
	at := e.begin(metricLabel)
	e.text(labelName, name)
	e.text(labelValue, value)
	e.end(at)
	return e.data
}

func (e *encoder) histogram(h *histogram, one *series, classic, native bool) {
	at := e.begin(metricHistogram)
	e.unsigned(histogramCount, h.count)
	e.float(histogramSum, h.sum)
	if classic {
		e.classic(h, one.desc.Buckets)
	}
	if native {
		e.signed(histogramSchema, int64(h.schema))
		e.float(histogramThreshold, zeroThreshold)
		e.unsigned(histogramZeroCount, h.zero)
		if h.negative != nil {
			e.buckets(h.negative, negativeSpan, negativeDelta)
		}
		e.buckets(&h.positive, positiveSpan, positiveDelta)
	}
	if one.created != nil {
		e.message(histogramCreated, one.created)
	}
	if !classic {
		for _, x := range h.inOrderOfTime() {
			e.message(histogramExemplars, x)
		}
	}
	e.end(at)
}

// classic appends the classic buckets, cumulated. As in client_golang, the last bucket has a message only if it has an
// exemplar.
func (e *encoder) classic(h *histogram, bounds []float64) {
	count := uint64(0)
	for i, n := range h.classic {
		count += n
		last, x := i == len(bounds), h.exemplar(i)
		if last && x == nil {
			return
		}
		at := e.begin(histogramBucket)
		e.unsigned(bucketCount, count)
		if last {
			e.float(bucketBound, math.Inf(1))
		} else {
			e.float(bucketBound, bounds[i])
		}
		if x != nil {
			e.message(bucketExemplar, x)
		}
		e.end(at)
	}
}

// buckets appends the native buckets of one sign: spans of buckets, and packed differences of counts.
func (e *encoder) buckets(b *buckets, span, delta protowire.Number) {
	for offset, run := range b.runs() {
		at := e.begin(span)
		e.signed(spanOffset, int64(offset))
		e.unsigned(spanLength, uint64(len(run)))
		e.end(at)
	}
	if len(b.counts) == 0 {
		return
	}
	at, previous := e.begin(delta), int64(0)
	for _, run := range b.runs() {
		for _, c := range run {
			e.data = protowire.AppendVarint(e.data, protowire.EncodeZigZag(int64(c)-previous))
			previous = int64(c)
		}
	}
	e.end(at)
}
