package report

import (
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
)

// JSON is a view for machines: one object a case. Bytes are escaped as in a case
// file, without the quotes.
type JSON struct {
	Case       string         `json:"case"`
	Title      string         `json:"title,omitempty"`
	Verdict    string         `json:"verdict"`
	Why        string         `json:"why,omitempty"`
	Note       string         `json:"note,omitempty"`
	Reference  string         `json:"reference"`
	Candidate  string         `json:"candidate"`
	Mismatches []JSONMismatch `json:"mismatches,omitempty"`
	InPlay     string         `json:"in_play,omitempty"`
	Masks      map[string]int `json:"masks,omitempty"`
	Again      string         `json:"again,omitempty"`
}

// JSONMismatch is one difference: where, at which byte, and both values, cut
// around it.
type JSONMismatch struct {
	Kind      diff.Kind `json:"kind"`
	Where     string    `json:"where"`
	At        int       `json:"at"`
	Reference string    `json:"reference"`
	Candidate string    `json:"candidate"`
}

// most that is shown of a value around a difference, in bytes.
const jsonBefore, jsonBehind = 256, 1024

// JSON returns v for a machine.
func (v *View) JSON() JSON {
	j := JSON{Case: v.Case.Name, Title: v.Case.Title, Verdict: v.Result.Verdict.String(), Why: v.Result.Why, Note: v.Note,
		Reference: v.Ref, Candidate: v.Cand, Masks: v.Result.Masks}
	if v.Word != "" {
		j.Verdict = v.Word
	}
	for _, m := range v.Result.Mismatches {
		j.Mismatches = append(j.Mismatches, JSONMismatch{Kind: m.Kind, Where: m.Where, At: m.At,
			Reference: around(m.Ref, m.At), Candidate: around(m.Cand, m.Pos)})
	}
	if len(v.Result.Mismatches) > 0 {
		j.InPlay, j.Again = v.inPlay(), v.Again
	}
	return j
}

func around(text []byte, at int) string {
	from, to := max(0, at-jsonBefore), min(len(text), at+jsonBehind)
	return string(casefile.AppendEscaped(nil, text[from:to]))
}
