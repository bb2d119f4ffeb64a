package export

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/tokens"
	v1 "switchyard/proto/switchyard/v1"
)

// tokenKind gives access to the tokens, except the first one of the deployment.
type tokenKind struct{ registry *tokens.Registry }

func (k tokenKind) enabled() error {
	if k.registry == nil {
		return rpcerror.WrongState("this gateway requires no tokens; start it with --auth tokens, or leave the tokens out")
	}
	return nil
}

func (k tokenKind) list(ctx context.Context) (names, warnings []string, err error) {
	all, warnings, err := k.registry.List(ctx)
	for _, t := range all {
		if t.GetState() == v1.TokenActive && !tokens.IsFirst(t) {
			names = append(names, tokenName(t))
		}
	}
	return sorted(names), warnings, err
}

func tokenName(t *v1.Token) string { return t.GetName() + "/" + t.GetId() }

func tokenItem(record *v1.TokenRecord) *v1.ExportedItem {
	return &v1.ExportedItem{Kind: v1.ExportToken, Name: tokenName(record.GetToken()), Content: &v1.ExportedItem_Token{Token: record}}
}

// find returns the token with the id of a given one, whatever its name is.
func (k tokenKind) find(ctx context.Context, like *v1.ExportedItem) (*v1.ExportedItem, error) {
	record, err := k.registry.Record(ctx, like.GetName()[strings.LastIndex(like.GetName(), "/")+1:])
	if err != nil || record == nil {
		return nil, err
	}
	return tokenItem(record), nil
}

func (k tokenKind) check(ctx context.Context, item *v1.ExportedItem) (*v1.ExportedItem, []string, error) {
	if err := tokens.CheckRecord(item.GetToken()); err != nil {
		return nil, nil, err
	}
	record := proto.CloneOf(item.GetToken())
	record.Token.State, record.Token.LastUsedAt = "", nil // as the registry stores it
	checked := tokenItem(record)
	stored, err := k.find(ctx, checked)
	if by := stored.GetToken().GetToken(); by.GetRevokedAt() != nil {
		return checked, []string{fmt.Sprintf("token %s was revoked here by %s and stays revoked", checked.GetName(), by.GetRevokedBy())}, err
	}
	return checked, nil, err
}

// isSame reports that a revoked token is the same whatever it was before: a revocation is permanent.
func (k tokenKind) isSame(_ context.Context, item, stored *v1.ExportedItem) (bool, error) {
	return stored.GetToken().GetToken().GetRevokedAt() != nil || proto.Equal(item, stored), nil
}

func (k tokenKind) put(ctx context.Context, item, _ *v1.ExportedItem) error {
	return k.registry.Restore(ctx, item.GetToken())
}
