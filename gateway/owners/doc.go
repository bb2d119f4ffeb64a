// Package owners implements OwnerService: admins set what the owners of runs may use of the fleet, and people see what they use.
package owners
