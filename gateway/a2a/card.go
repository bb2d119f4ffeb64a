package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// maxSkills bounds the skills of a card.
const maxSkills = 200

// textModes and dataModes are the media types of skills that accept text and of skills that accept only data.
var (
	textModes = []string{"application/json", "text/plain"}
	dataModes = textModes[:1]
)

// card returns the agent card for a caller that reaches the gateway at url.
func (a *agent) card(ctx context.Context, url, version string) (*a2a.AgentCard, error) {
	stored, err := a.skills(ctx)
	if err != nil {
		return nil, err
	}
	card := &a2a.AgentCard{
		Name:        "Switchyard",
		Description: "Runs workflows durably on the machines of a fleet. Each skill is a workflow; a task is a run of it.",
		Version:     version,
		SupportedInterfaces: []*a2a.AgentInterface{
			a2a.NewAgentInterface(url+Path, a2a.TransportProtocolJSONRPC), a2a.NewAgentInterface(url+RESTPath, a2a.TransportProtocolHTTPJSON),
		},
		Capabilities:       a2a.AgentCapabilities{Streaming: true},
		DefaultInputModes:  textModes,
		DefaultOutputModes: textModes,
		Skills:             []a2a.AgentSkill{},
	}
	if auth.From(ctx).IsVerified() {
		card.SecuritySchemes = a2a.NamedSecuritySchemes{"bearer": a2a.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "A gateway token, created with `switchyard tokens create`."}}
		card.SecurityRequirements = a2a.SecurityRequirementsOptions{{"bearer": {}}}
	}
	for _, s := range stored[:min(len(stored), maxSkills)] {
		res, err := a.Workflows.GetWorkflow(ctx, connect.NewRequest(&v1.GetWorkflowRequest{Name: s.GetName()}))
		if connect.CodeOf(err) == connect.CodeNotFound {
			continue // it has been deleted since it was listed
		}
		if err != nil {
			return nil, err
		}
		card.Skills = append(card.Skills, cardSkill(res.Msg.GetDefinition()))
	}
	return card, nil
}

// cardSkill describes a workflow as a skill.
func cardSkill(def *v1.Definition) a2a.AgentSkill {
	skill := a2a.AgentSkill{
		ID: def.GetName(), Name: def.GetName(), Tags: []string{"workflow"}, InputModes: textModes, OutputModes: textModes,
		Description: cmp.Or(def.GetDescription(), "Runs the workflow "+def.GetName()+"."),
	}
	var lines []string
	for _, name := range inputNames(def) {
		lines = append(lines, "- "+name+": "+definition.DescribeInput(def.GetInputs()[name]))
	}
	if len(lines) > 0 {
		skill.Description += "\n\nInputs, as a data part:\n" + strings.Join(lines, "\n")
		if def.GetInputs()[textInput] == nil {
			skill.InputModes = dataModes
		}
	}
	return skill
}

// serveCard serves the agent card. The URLs use https if the client reached the gateway by HTTPS, directly or through a
// proxy.
func (a *agent) serveCard(version string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
			scheme = "https"
		}
		card, err := a.card(r.Context(), scheme+"://"+r.Host, version)
		if err != nil {
			writeCardError(w, toProtocolError(r.Context(), err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		_ = json.NewEncoder(w).Encode(card) // fails only if the client has left
	}
}

// writeCardError writes an error as plain JSON, because the card endpoint is outside the protocol and its error format.
func writeCardError(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": err.Error()})
}
