package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/environments"
	"switchyard/activities/library"
	"switchyard/activities/secrets/vault"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/sshkeys"
	"switchyard/gateway/tokens"
	"switchyard/gateway/workflows"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// defaultPage is the page size of a request without one.
const defaultPage = 1000

// Service implements ExportService. It is safe for concurrent use.
type Service struct {
	Environments *environments.Library
	Keys         *sshkeys.Registry
	// Vault holds the secrets, or is nil if this gateway keeps none.
	Vault *vault.Vault
	// Tokens holds the tokens, or is nil if authentication is off.
	Tokens    *tokens.Registry
	Workflows workflows.Service
	// Library stores the workflows.
	Library *library.Library
}

var _ switchyardv1connect.ExportServiceHandler = Service{}

// kind gives access to the items of a kind. It is safe for concurrent use.
type kind interface {
	// enabled returns an error if this gateway cannot store items of the kind.
	enabled() error
	// list returns the names of the items that can be read, in ascending order, and a warning for each of the others. It is not
	// called unless the kind is enabled.
	list(ctx context.Context) (names, warnings []string, err error)
	// find returns the item that is stored under the name of a given one, or nil. Only the kind and the name of the given item must
	// be set. A found secret has no value.
	find(ctx context.Context, like *v1.ExportedItem) (*v1.ExportedItem, error)
	// check returns an item as it would be stored, and what it needs and does not have yet. The error is InvalidArgument for an item
	// that cannot be stored.
	check(ctx context.Context, item *v1.ExportedItem) (checked *v1.ExportedItem, warnings []string, err error)
	// isSame reports whether a checked item is what is stored.
	isSame(ctx context.Context, item, stored *v1.ExportedItem) (bool, error)
	// put stores a checked item in place of the stored one. stored is nil if no item of that name is stored.
	put(ctx context.Context, item, stored *v1.ExportedItem) error
}

// kinds returns the kinds by their names.
func (s Service) kinds() map[string]kind {
	return map[string]kind{
		v1.ExportEnvironment: environmentKind{s.Environments},
		v1.ExportKey:         keyKind{s.Keys, s.Tokens != nil},
		v1.ExportSecret:      secretKind{s.Vault},
		v1.ExportToken:       tokenKind{s.Tokens},
		v1.ExportWorkflow:    workflowKind{s.Workflows, s.Library},
	}
}

// ExportItems returns a page of the items of all kinds, ordered by kind, then name.
func (s Service) ExportItems(ctx context.Context, req *connect.Request[v1.ExportItemsRequest]) (*connect.Response[v1.ExportItemsResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	var firstKind, firstName string // of the page
	if token := req.Msg.GetPageToken(); token != "" {
		if firstKind, firstName, err = pages.Place(token); err != nil {
			return nil, err
		}
	}
	seal, err := newSealer(req.Msg.GetRecipient())
	if err != nil {
		return nil, err
	}
	res, size, limit := &v1.ExportItemsResponse{}, 0, cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	fields := v1.ExportKinds()
	for i := range fields.Len() {
		name := string(fields.Get(i).Name())
		of := s.kinds()[name]
		if name < firstKind || of.enabled() != nil || name == v1.ExportSecret && seal == nil {
			continue
		}
		names, warnings, err := of.list(ctx)
		if err != nil {
			return nil, err
		}
		if name == firstKind {
			names = names[sort.SearchStrings(names, firstName):]
		} else {
			res.Warnings = append(res.Warnings, warnings...)
		}
		for _, one := range names {
			item, err := of.find(ctx, &v1.ExportedItem{Kind: name, Name: one})
			if err == nil && item.GetSecret() != nil {
				err = seal.addValue(ctx, s.Vault, item)
			}
			switch {
			case errors.Is(err, vault.ErrKey):
				res.Warnings = append(res.Warnings, fmt.Sprintf("secret %s is left out: %v", one, err))
				continue
			case err != nil:
				return nil, err
			case item == nil: // deleted meanwhile
				continue
			}
			size += proto.Size(item)
			if n := len(res.GetItems()); n == limit || n > 0 && size > paging.MaxBytes {
				res.NextPageToken = pages.Token(name, one)
				return connect.NewResponse(res), nil
			}
			res.Items = append(res.Items, item)
		}
	}
	return connect.NewResponse(res), nil
}

// PlanImport compares an item with the stored one.
func (s Service) PlanImport(ctx context.Context, req *connect.Request[v1.PlanImportRequest]) (*connect.Response[v1.PlanImportResponse], error) {
	p, err := s.plan(ctx, req.Msg.GetItem())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.PlanImportResponse{Action: p.action, Stored: p.stored, Warnings: p.warnings}), nil
}

// ImportItem stores an item.
func (s Service) ImportItem(ctx context.Context, req *connect.Request[v1.ImportItemRequest]) (*connect.Response[v1.ImportItemResponse], error) {
	p, err := s.plan(ctx, req.Msg.GetItem())
	switch {
	case err != nil:
		return nil, err
	case p.action == v1.ImportKeep:
		return connect.NewResponse(&v1.ImportItemResponse{Action: p.action}), nil
	case p.action == v1.ImportChange && !req.Msg.GetOverwrite():
		return nil, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("%s %s exists and is different; request to overwrite it, or leave it out", p.item.GetKind(), p.item.GetName()))
	}
	if err := p.kind.put(ctx, p.item, p.stored); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.ImportItemResponse{Action: p.action}), nil
}

// planned is what an import does with an item.
type planned struct {
	kind         kind
	item, stored *v1.ExportedItem
	action       string
	warnings     []string
}

// plan checks an item and decides what to do with it.
func (s Service) plan(ctx context.Context, item *v1.ExportedItem) (planned, error) {
	content := item.ProtoReflect().WhichOneof(v1.ExportKinds().Get(0).ContainingOneof())
	of := s.kinds()[item.GetKind()]
	if of == nil || content == nil || string(content.Name()) != item.GetKind() {
		return planned{}, rpcerror.Invalid("an item of the kind %.64q needs a field of this name, and this gateway knows the kinds %s", item.GetKind(), kindNames())
	}
	if err := of.enabled(); err != nil {
		return planned{}, err
	}
	name := item.GetName()
	checked, warnings, err := of.check(ctx, item)
	switch {
	case err != nil:
		return planned{}, err
	case checked.GetName() != name:
		return planned{}, rpcerror.Invalid("the item is named %.200q, and its content %.200q", name, checked.GetName())
	}
	p := planned{kind: of, item: checked, action: v1.ImportCreate, warnings: warnings}
	if p.stored, err = of.find(ctx, checked); err != nil || p.stored == nil {
		return p, err
	}
	p.action = v1.ImportChange
	same, err := of.isSame(ctx, checked, p.stored)
	if same {
		p.action = v1.ImportKeep
	}
	return p, err
}

// kindNames returns the names of the kinds as a text.
func kindNames() (text string) {
	fields := v1.ExportKinds()
	for i := range fields.Len() {
		text += ", " + string(fields.Get(i).Name())
	}
	return text[2:]
}

// sorted returns names in ascending order.
func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
