package slareport

import (
	"context"
	"fmt"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/sample"
)

// mostUnrecorded is the number of measured hours of a part that the rules may lack: the hours in which the agent started or stopped.
const mostUnrecorded = 2

// hours selects a long-term series, which has a sample of each hour that ends in the part.
func (p *part) hours(name string) string {
	return p.series(name) + " offset -" + seconds(rules.RecordedWithin)
}

// sum adds a long-term series.
func (p *part) sum(name string) string {
	return "sum by (direction) (sum_over_time(" + p.hours(name) + "))"
}

// Values of the label family in the query of find.
const (
	hoursRecorded = "hours_recorded"
	hoursMeasured = "hours_measured"
	atFullHours   = "at_full_hours"
)

// find finds out whether the rules have recorded the part: its ends are full hours of the agent, and the rules have the hours in which
// the path was measured. They have the counts of whole hours, of months that Prometheus may have the counters of no longer, and trends and dashboards have the same.
func (p *part) find(ctx context.Context) error {
	if p.length < time.Hour || p.length%time.Hour != 0 {
		return nil
	}
	sent := rules.LongIncrease(metric.PacketsSent) + "{" + p.match + "," + metric.Direction + "=\"" + sample.Forward.String() + "\"}"
	up := metric.ProbeUp.Name + "{" + p.match + "}"
	length := seconds(p.length)
	begins := rules.RecordedWithin - p.length
	at := func(offset time.Duration) string {
		return fmt.Sprintf("count(count_over_time(%s[%s] offset %ds))", sent, seconds(rules.RecordedWithin+time.Second), -int64(offset.Seconds()))
	}
	values, err := p.client.At(ctx, named("count_over_time(max(count_over_time("+sent+"[1h]))["+length+":1h] offset -"+seconds(rules.RecordedWithin)+")", hoursRecorded)+
		" or "+named("count_over_time(max(max_over_time("+up+"[1h]))["+length+":1h])", hoursMeasured)+
		" or "+named(at(rules.RecordedWithin)+" or "+at(begins), atFullHours), p.to)
	if err != nil {
		return err
	}
	all := byFamily(values)
	n := all[hoursRecorded][""]
	p.recorded = n > 0 && n+mostUnrecorded >= all[hoursMeasured][""] && all[atFullHours][""] > 0
	return nil
}
