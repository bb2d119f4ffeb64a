// Package owners keeps in the store what the owners of runs may use of the fleet, and what they use.
//
// Gateways write the terms of owners, and the leader of the placement queue reads them; it writes what the owners use, and the next
// leader and all gateways read that.
//
// The package may import proto, activities/store and activities/store/storekey; it knows no Temporal.
package owners
