// Package export implements ExportService: it returns what people have set up in a deployment as items, and stores such items in
// another deployment.
//
//	          ExportItems                    PlanImport, ImportItem
//	kinds ───────────────▶ items in a file ────────────────────────▶ kinds
//	           │ seal: values of secrets, for the recipient
//
// Each kind of item is a file with an implementation of kind. A new kind is a field of ExportedItem and an entry in kinds.
//
// Of this module it may import proto, activities/environments, activities/executor, activities/library, activities/secrets/vault,
// gateway/auth, gateway/paging, gateway/rpcerror, gateway/sshkeys, gateway/tokens and gateway/workflows.
package export
