// Package influxql runs every InfluxQL statement of the dashboards on a real InfluxDB 1.8 and compares what they return with the
// raw samples that the points were made of.
package influxql
