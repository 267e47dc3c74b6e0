package main

import (
	"slices"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
)

// hostTag is the tag that every output adds by default.
const hostTag = "host"

// place is where the points have a family: the measurement and the field of a rank, which is empty without quantiles.
func place(d *metric.Desc, rank string) (measurement, field string) {
	for _, m := range point.Series(families.All()) {
		for _, c := range m.Columns {
			if c.Desc != d || c.Part != point.Number {
				continue
			}
			if c.Ranked {
				return m.Name, point.Ranked(c.Key, rank)
			}
			return m.Name, c.Key
		}
	}
	panic("dashboards: " + d.Name + " is in no measurement")
}

// fieldOf is the quoted field of a family.
func fieldOf(d *metric.Desc, rank string) string {
	_, field := place(d, rank)
	return name(field)
}

// ofRun is the quoted measurement of the results of runs of a family.
func ofRun(d *metric.Desc) string {
	measurement, _ := place(d, "0.5")
	return name(point.OfRun(measurement))
}

// packet, flow, tcpByte, incident and position are quoted fields or tags of raw samples.
func packet(key string) string   { return rawName(point.RunPacket, key) }
func flow(key string) string     { return rawName(record.TCPTrace.Name, key) }
func tcpByte(key string) string  { return rawName(record.TCPBytes.Name, key) }
func incident(key string) string { return rawName(record.IncidentPackets.Name, key) }
func position(key string) string { return rawName(record.Track.Name, key) }

// rawName quotes a field or a tag that the measurement has: a renamed one fails the generation.
func rawName(measurement, key string) string {
	for _, m := range point.RawMeasurements(families.Tables()) {
		if m.Name == measurement && (slices.Contains(m.Tags, key) || slices.ContainsFunc(m.Columns, func(c point.Column) bool { return c.Key == key })) {
			return name(key)
		}
	}
	panic("dashboards: " + measurement + " has no " + key)
}
