package metric

// Voice.
var (
	VoiceR = Family(Desc{
		Name: "oneway_voice_r_factor", Kind: Gauge, Labels: perVoice,
		Help:   "Transmission rating R of a call over this direction, 0..100, from the measured delay, loss, burstiness and a playout buffer; good from 80, bad below 70.",
		Absent: "In a window without a valid delay, or that decided fewer than 10 packets, and where packets without an outcome, or whose delay is not known since their reply was lost, could change R by more than 10. In a window with a delay that is negative by more than its error bound, and as long after it as oneway_delay_error_bound_seconds, in both directions.",
		Source: "ITU-T G.107 (06/2015) clause 7; Woo 2010 section 7.1",
	})
	VoiceRError = Family(Desc{
		Name: "oneway_voice_error_bound_r_factor", Kind: Gauge, Labels: perVoice,
		Help:   "Error bound of R caused by the error bound of the one-way delay, and by packets whose outcome or delay is not known: the largest change of R within that bound, if all of these packets were played, or all were lost in a row. It does not include what a change of the clocks' offset in the window does to the playout buffer.",
		Absent: "Where oneway_voice_r_factor is absent.",
		Source: "ITU-T G.107 (06/2015) clause 7.4; design, invariant 1",
	})
	VoiceRHighest = Family(Desc{
		Name: "oneway_voice_highest_r_factor", Kind: Gauge, Labels: perVoice,
		Help:   "Highest R that the error bound of the one-way delay permits, if all packets whose outcome or delay is not known were played. It is known where these packets could lower R by so much that oneway_voice_r_factor is absent.",
		Absent: "In a window without such packets, where it is oneway_voice_r_factor plus its error bound, without a valid delay, or that decided fewer than 10 packets, where the direction of lost packets is not known, and where oneway_delay_error_bound_seconds is absent because a delay was negative.",
		Source: "ITU-T G.107 (06/2015) clause 7.4; design, invariant 1",
	})
	VoiceMOS = Family(Desc{
		Name: "oneway_voice_mos", Kind: Gauge, Labels: perVoice, Source: "ITU-T G.107 Annex B",
		Help:   "Estimated mean opinion score MOS-CQE, 1..4.5.",
		Absent: "Where oneway_voice_r_factor is absent.",
	})
	VoiceDelayImpairment = Family(Desc{
		Name: "oneway_voice_delay_impairment", Kind: Gauge, Labels: perVoice, Source: "ITU-T G.107 clause 7.4",
		Help:   "Delay impairment Id in units of R.",
		Absent: "Without the option voice_impairments, and where oneway_voice_r_factor is absent.",
	})
	VoiceEquipmentImpairment = Family(Desc{
		Name: "oneway_voice_equipment_impairment", Kind: Gauge, Labels: perVoice, Source: "ITU-T G.107 clause 7.5",
		Help:   "Effective equipment impairment Ie,eff in units of R.",
		Absent: "Without the option voice_impairments, and where oneway_voice_r_factor is absent.",
	})
	VoiceMouthToEar = Family(Desc{
		Name: "oneway_voice_mouth_to_ear_delay_seconds", Kind: Gauge, Labels: []string{Path, Probe, Direction, CodecL, BufferL},
		Help:   "Mouth-to-ear delay in seconds: packetization, look-ahead, network and playout buffer.",
		Absent: "Where oneway_voice_r_factor is absent.",
		Source: "ITU-T G.107 clause 7.4; G.114",
	})
	VoicePlayoutLoss = Family(Desc{
		Name: "oneway_voice_playout_loss_ratio", Kind: Gauge, Labels: []string{Path, Probe, Direction, CodecL, BufferL},
		Help:   "Packets lost on the path or too late for the playout buffer divided by all packets, 0..1.",
		Absent: "Where oneway_voice_r_factor is absent.",
		Source: "ITU-T G.1020 (07/2006) clause 8.5",
	})
)

// voiceGroup has the families of TitleVoice.
func voiceGroup() Group {
	return Group{
		Title: TitleVoice,
		Descs: []*Desc{
			VoiceDelayImpairment, VoiceEquipmentImpairment, VoiceRError, VoiceRHighest, VoiceMOS, VoiceMouthToEar, VoicePlayoutLoss, VoiceR,
		},
		Measurements: []Measurement{
			{Name: "oneway_voice", Labels: perVoice},
			{Name: "oneway_voice_playout", Labels: []string{Path, Probe, Direction, CodecL, BufferL}},
		},
	}
}
