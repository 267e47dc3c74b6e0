// Package receiver simulates a GNSS receiver for gpsd: NMEA 0183 sentences of this host's clock on a pty or a FIFO, with a position
// that moves on a circle, satellites, and a fix that can be lost. A test knows the position of any time (Track.At).
package receiver
