package stamp

// The value lengths that RFC 8972 fixes, in octets. Those of Location and
// Timestamp Information are the least: sub-TLVs may follow.
const (
	locationBytes             = 4
	timestampInformationBytes = 4
	classOfServiceBytes       = 4
	directMeasurementBytes    = 12
	accessReportBytes         = 4
	followUpBytes             = 16
)

// Location asks how the question arrived (RFC 8972 section 4.2). A sender leaves
// the values zero; our reflector does not answer it.
type Location struct {
	// DestinationPort and SourcePort are the UDP ports that the question arrived with.
	DestinationPort, SourcePort uint16
	// SubTLVs are addresses, in the form of TLVs: see NextTLV. It aliases the packet.
	SubTLVs []byte
}

// AppendTo appends the whole TLV.
func (v Location) AppendTo(b []byte) []byte {
	sub := v.SubTLVs[:min(len(v.SubTLVs), maxValueBytes-locationBytes)]
	b = appendHeader(b, senderFlags, TypeLocation, locationBytes+len(sub))
	return append(be.AppendUint16(be.AppendUint16(b, v.DestinationPort), v.SourcePort), sub...)
}

// ParseLocation reads the value. The error is ErrMalformedTLV.
func ParseLocation(v []byte) (l Location, err error) {
	if len(v) < locationBytes {
		return l, wrongLength(TypeLocation, len(v), locationBytes)
	}
	return Location{be.Uint16(v), be.Uint16(v[2:]), v[locationBytes:]}, nil
}

// TimestampInformation says how the reflector takes its stamps (RFC 8972 section
// 4.3); In is T2, Out is T3. A sender leaves it zero.
type TimestampInformation struct {
	// SyncIn: what the clock follows. 1 NTP, 2 PTP, 3 SSU or BITS, 4 a satellite
	// or radio system, 5 nothing (RFC 8972 section 5.4).
	SyncIn uint8
	// MethodIn: where the stamp is taken. 1 hardware, 2 software, 3 the control
	// plane (RFC 8972 section 5.5).
	MethodIn uint8
	// SyncOut and MethodOut are those of T3.
	SyncOut, MethodOut uint8
}

// AppendTo appends the whole TLV.
func (v TimestampInformation) AppendTo(b []byte) []byte {
	b = appendHeader(b, senderFlags, TypeTimestampInformation, timestampInformationBytes)
	return append(b, v.SyncIn, v.MethodIn, v.SyncOut, v.MethodOut)
}

// ParseTimestampInformation reads the value, sub-TLVs ignored. The error is
// ErrMalformedTLV.
func ParseTimestampInformation(v []byte) (t TimestampInformation, err error) {
	if len(v) < timestampInformationBytes {
		return t, wrongLength(TypeTimestampInformation, len(v), timestampInformationBytes)
	}
	return TimestampInformation{v[0], v[1], v[2], v[3]}, nil
}

// ClassOfService asks for and reports DiffServ marks (RFC 8972 section 4.4 with
// erratum 8199): DSCP1 (6 bits) DSCP2 (6) ECN (2) RP (2) reserved (16).
type ClassOfService struct {
	// DSCP1, 0..63, is what the sender asks for the answer.
	DSCP1 uint8
	// DSCP2, 0..63, and ECN, 0..3, are the marks with which the question arrived.
	DSCP2, ECN uint8
	// RP is 1 if the reflector did not mark the answer as asked, but as the
	// question was; otherwise 0.
	RP uint8
}

// AppendTo appends the whole TLV. Of each field the low bits are written.
func (v ClassOfService) AppendTo(b []byte) []byte {
	b = appendHeader(b, senderFlags, TypeClassOfService, classOfServiceBytes)
	return be.AppendUint32(b, uint32(v.DSCP1&63)<<26|uint32(v.DSCP2&63)<<20|uint32(v.ECN&3)<<18|uint32(v.RP&3)<<16)
}

// ParseClassOfService reads the value. The error is ErrMalformedTLV.
func ParseClassOfService(v []byte) (c ClassOfService, err error) {
	if len(v) != classOfServiceBytes {
		return c, wrongLength(TypeClassOfService, len(v), classOfServiceBytes)
	}
	w := be.Uint32(v)
	return ClassOfService{uint8(w >> 26), uint8(w >> 20 & 63), uint8(w >> 18 & 3), uint8(w >> 16 & 3)}, nil
}

// DirectMeasurement counts packets (RFC 8972 section 4.5), modulo 2^32: those
// that the sender sent, and those that the reflector received and sent. A sender
// leaves the latter two zero.
type DirectMeasurement struct{ SenderTx, ReflectorRx, ReflectorTx uint32 }

// AppendTo appends the whole TLV.
func (v DirectMeasurement) AppendTo(b []byte) []byte {
	b = appendHeader(b, senderFlags, TypeDirectMeasurement, directMeasurementBytes)
	return be.AppendUint32(be.AppendUint32(be.AppendUint32(b, v.SenderTx), v.ReflectorRx), v.ReflectorTx)
}

// ParseDirectMeasurement reads the value. The error is ErrMalformedTLV.
func ParseDirectMeasurement(v []byte) (d DirectMeasurement, err error) {
	if len(v) != directMeasurementBytes {
		return d, wrongLength(TypeDirectMeasurement, len(v), directMeasurementBytes)
	}
	return DirectMeasurement{be.Uint32(v), be.Uint32(v[4:]), be.Uint32(v[8:])}, nil
}

// AccessReport tells a change of the access network (RFC 8972 section 4.6):
// ID (4 bits) reserved (4) return code (8) reserved (16). We neither send nor
// answer it.
type AccessReport struct {
	// ID, 0..15, is 1 for a 3GPP network and 2 for another; no other value is valid.
	ID uint8
	// ReturnCode is 1 for available, 2 for unavailable (RFC 8972 section 5.6).
	ReturnCode uint8
}

// AppendTo appends the whole TLV.
func (v AccessReport) AppendTo(b []byte) []byte {
	return append(appendHeader(b, senderFlags, TypeAccessReport, accessReportBytes), v.ID<<4, v.ReturnCode, 0, 0)
}

// ParseAccessReport reads the value. The error is ErrMalformedTLV.
func ParseAccessReport(v []byte) (a AccessReport, err error) {
	if len(v) != accessReportBytes {
		return a, wrongLength(TypeAccessReport, len(v), accessReportBytes)
	}
	return AccessReport{v[0] >> 4, v[1]}, nil
}

// FollowUp carries the true transmit stamp of an earlier answer (RFC 8972 section
// 4.7): sequence number (4 octets) stamp (8) mode (1) reserved (3). The zero
// value, blank, is what a sender sends, and a reflector that keeps no state.
type FollowUp struct {
	// Seq is the reflector's own number of the answer before.
	Seq uint32
	// T3 is raw, in the format of the packet's Error Estimate.
	T3 uint64
	// Mode says how it was taken, as TimestampInformation.MethodIn; 0: there is none.
	Mode uint8
}

// AppendTo appends the whole TLV.
func (v FollowUp) AppendTo(b []byte) []byte {
	b = be.AppendUint32(appendHeader(b, senderFlags, TypeFollowUp, followUpBytes), v.Seq)
	return append(be.AppendUint64(b, v.T3), v.Mode, 0, 0, 0)
}

// ParseFollowUp reads the value. The error is ErrMalformedTLV.
func ParseFollowUp(v []byte) (f FollowUp, err error) {
	if len(v) != followUpBytes {
		return f, wrongLength(TypeFollowUp, len(v), followUpBytes)
	}
	return FollowUp{be.Uint32(v), be.Uint64(v[4:]), v[12]}, nil
}
