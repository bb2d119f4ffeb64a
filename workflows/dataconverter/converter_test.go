package dataconverter

import (
	"errors"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// at returns a converter of a program that understands and writes the given data levels.
func at(readable, written int) Converter {
	c := New()
	c.readable, c.written = readable, written
	return c
}

func encoded(t *testing.T, c Converter, value any) *commonpb.Payload {
	t.Helper()
	p, err := c.ToPayload(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// withNewField returns the payload of a message with a field that no program of this version knows.
func withNewField(t *testing.T, m proto.Message) *commonpb.Payload {
	t.Helper()
	p := encoded(t, New(), m)
	p.Data = []byte(strings.Replace(strings.Replace(string(p.GetData()), "{", `{"fieldOfTheFuture":{"x":[1]},`, 1), ",}", "}", 1))
	return p
}

// decoded returns the error of decoding a payload, and whether the error was a panic.
func decoded(c Converter, p *commonpb.Payload, value any) (panicked bool, err error) {
	defer func() {
		if e, ok := recover().(error); ok {
			panicked, err = true, e
		}
	}()
	return false, c.FromPayloads(&commonpb.Payloads{Payloads: []*commonpb.Payload{p}}, value)
}

func TestFieldsOfANewerProgram(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		message proto.Message
		into    any
		refused bool
	}{
		{"registration", &historyv1.NodeRegistration{Name: "a"}, new(*historyv1.NodeRegistration), false},
		{"request to a node", &historyv1.ExecuteRequest{RunId: "a"}, &historyv1.ExecuteRequest{}, false},
		{"query", &historyv1.StatusRequest{Since: 3}, new(*historyv1.StatusRequest), false},
		{"input of a run", &historyv1.RunInput{Generation: 2}, new(*historyv1.RunInput), true},
		{"state of a run", &historyv1.RunState{Waiting: true}, &historyv1.RunState{}, true},
		{"input of a child", &historyv1.PreparedChild{Id: "a"}, &historyv1.PreparedChild{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := withNewField(t, test.message)
			for _, c := range []Converter{New(), New().InWorkflow()} {
				panicked, err := decoded(c, p, test.into)
				newer, isNewer := errors.AsType[*historyv1.NewerDataError](err)
				if isNewer != test.refused || !isNewer && err != nil || panicked != (c.inWorkflow && test.refused) {
					t.Errorf("in a workflow %t: %v, panic %t", c.inWorkflow, err, panicked)
				}
				if isNewer && !strings.Contains(newer.Error(), "was written by a newer Switchyard, and has parts that this one does not know; upgrade this program") {
					t.Error(newer)
				}
			}
		})
	}
	var got historyv1.NodeRegistration
	if err := New().FromPayload(withNewField(t, &historyv1.NodeRegistration{Name: "a", Machine: "m"}), &got); err != nil || got.GetName() != "a" || got.GetMachine() != "m" {
		t.Errorf("the known fields: %v, %v", &got, err)
	}
}

func TestDataLevelOfPayloads(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		written, readable int
		refused           bool
	}{{1, 1, false}, {1, 2, false}, {2, 2, false}, {2, 1, true}, {3, 2, true}} {
		p := encoded(t, at(test.written, test.written), &historyv1.NodeInput{Name: "a"})
		reader := at(test.readable, 1)
		for _, value := range []any{&historyv1.NodeInput{}, new(*historyv1.NodeInput), new(converter.RawValue)} {
			_, err := decoded(reader, p, value)
			if newer, ok := errors.AsType[*historyv1.NewerDataError](err); ok != test.refused || ok && newer.Level != test.written || !ok && err != nil {
				t.Errorf("%+v: %v", test, err)
			}
		}
		if panicked, _ := decoded(reader.InWorkflow(), p, &historyv1.NodeInput{}); panicked != test.refused {
			t.Errorf("%+v in a workflow: panic %t", test, panicked)
		}
		if panicked, _ := decoded(reader.InWorkflow(), p, new(*historyv1.StatusRequest)); panicked {
			t.Errorf("%+v: a query has panicked", test)
		}
	}
	plain, marked := encoded(t, at(1, 1), "word"), encoded(t, at(2, 2), "word")
	if _, ok := plain.GetMetadata()[levelMetadata]; ok || string(marked.GetMetadata()[levelMetadata]) != "2" {
		t.Errorf("level 1 is %v, level 2 is %v", plain, marked)
	}
	ps, err := at(2, 2).ToPayloads("one", "two")
	if err != nil || string(ps.GetPayloads()[1].GetMetadata()[levelMetadata]) != "2" {
		t.Errorf("several values: %v, %v", ps, err)
	}
}

func TestMalformedPayloadIsNotNewer(t *testing.T) {
	t.Parallel()
	p := encoded(t, New(), &historyv1.RunInput{})
	p.Data = []byte(`{"generation": "many"}`)
	panicked, err := decoded(New().InWorkflow(), p, &historyv1.RunInput{})
	if _, isNewer := errors.AsType[*historyv1.NewerDataError](err); err == nil || isNewer || panicked {
		t.Errorf("%v, panic %t", err, panicked)
	}
}
