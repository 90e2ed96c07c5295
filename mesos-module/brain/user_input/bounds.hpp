#ifndef __ALLOCATOR_BRAIN_USER_INPUT_BOUNDS_HPP__
#define __ALLOCATOR_BRAIN_USER_INPUT_BOUNDS_HPP__

#include <cstddef>

namespace allocator {
namespace brain {

// Limits on the input of frameworks, agents and their users, with reasons.
// Ordinary input stays below them; input beyond a limit is ignored (see
// `user_input.hpp`).

// Text, sized for file system paths. Sidecars accept considerably more.
constexpr size_t TEXT_BYTES_MAX = 4096;

// Resource names. People write them, so ordinary ones are short.
constexpr size_t NAME_BYTES_MAX = 256;

// Labels; those for the sidecar go first. The sidecar copies them with its
// state, and an event must stay far below the 4 MiB it reads.
constexpr size_t LABELS_MAX = 256;
constexpr size_t LABEL_BYTES_MAX = 256 << 10;

// Path of a role that is offered resources: agents use it in directory names,
// and each offered resource carries it.
constexpr size_t ROLE_BYTES_MAX = TEXT_BYTES_MAX;

// Levels of the role tree, all walked for each offer; the sidecar has the same
// limit. A deeper role becomes a child of its ancestor at level 63.
constexpr size_t ROLE_DEPTH_MAX = 64;

// Roles of a framework, and levels of all its roles together; each level takes
// a record. Roles beyond become children of their top-level role.
constexpr size_t ROLES_OF_FRAMEWORK_MAX = 1024;
constexpr size_t LEVELS_OF_FRAMEWORK_MAX = 4096;

// Sidecar work per principal (or user) and allocation interval, in roles: each
// role joined or changed costs up to 40 microseconds. Beyond the limit, only
// roles that are left or suppressed are reported at once; the rest waits for
// the next interval.
constexpr size_t WORKED_OUT_MAX = 8192;

// Suppressing or reviving this many roles counts as one role.
constexpr size_t SUPPRESSED_AS_ONE = 4;

// Long messages cost the sidecar time to read, and take room in the queue to
// it: this many bytes count as one role.
constexpr size_t BYTES_AS_A_ROLE = 1024;

// Roles named by frameworks, with ancestors. A sidecar binds 65,536 per
// session.
constexpr size_t ROLES_MAX = 49152;

// Roles that only agents name, in total and per agent; no agent runs that many
// tasks. They do not count against ROLES_MAX. 1,024 handles remain for roles
// that operators name. Roles beyond the limit are reported as their nearest
// known ancestor.
constexpr size_t USED_ROLES_MAX = 65536 - 1024 - ROLES_MAX;
constexpr size_t LEVELS_OF_AGENT_MAX = USED_ROLES_MAX / 60;

// Per principal (or user), over all its frameworks: new levels of the role
// tree, half of all roles; and pairs of framework and role, half of what a
// sidecar usually keeps.
constexpr size_t LEVELS_OF_PRINCIPAL_MAX = ROLES_MAX / 2;
constexpr size_t PAIRS_OF_PRINCIPAL_MAX = 65536;

// Minimums of offers: alternatives per role, names per alternative, names per
// framework. Each offer is compared with those of its role.
constexpr size_t ALTERNATIVES_MAX = 16;
constexpr size_t ALTERNATIVE_NAMES_MAX = 16;
constexpr size_t MINIMUM_NAMES_MAX = 4096;

// A REQUEST: entries, resources per entry, bytes of names, amounts and ids of
// agents; an event must stay small, and each framework's last one is kept.
constexpr size_t REQUESTS_MAX = 64;
constexpr size_t REQUEST_RESOURCES_MAX = 64;
constexpr size_t REQUEST_BYTES_MAX = 8 << 10;

// Attributes of an agent. A cluster has tens of thousands of agents, and a
// snapshot carries all their attributes.
constexpr size_t ATTRIBUTES_MAX = 1024;
constexpr size_t ATTRIBUTE_BYTES_MAX = 64 << 10;

// Amount of one object, in thousandths (8 PB of disk), so that 64 bits hold the
// sum of a million objects. Ranges drop numbers from RANGE_NUMBERS_MAX on:
// limiting the numbers themselves gives the same result however ranges are
// divided into objects.
constexpr size_t OBJECT_AMOUNT_MAX = size_t(1) << 43;
constexpr size_t RANGE_NUMBERS_MAX = OBJECT_AMOUNT_MAX / 1000;

// Items of SET resources: bytes of their texts, and overhead per item. A
// resource keeps the numbers of its items while it exists. It may take at most
// half of the room that other resources leave; further items are not offered.
constexpr size_t ITEM_BYTES_MAX = size_t(256) << 20;
constexpr size_t ITEM_BYTES_MORE = 128;

// Depth of reservations as reported to the sidecar: decisions only ask whether
// it exceeds one.
constexpr size_t RESERVATION_DEPTH_MAX = ROLE_DEPTH_MAX;

// How the kinds that the sidecar distinguishes (`limits.kinds`) are divided, in
// eighths: two for names that are not Mesos's own, which agents invent, and
// five for reserved resources. The rest is for Mesos's own names and for
// overflow kinds. A reporter (agent, framework, or principal of a reservation)
// may create kinds of a part only while it has fewer than half as many there as
// are still free, so that later ones find room.
constexpr size_t KINDS_NAMED_EIGHTHS = 2;
constexpr size_t KINDS_RESERVED_EIGHTHS = 5;
constexpr size_t KINDS_FREE_OF_OWN = 2;

// Kinds keep their handles for the session. If unused kinds take a quarter of a
// part, a new session begins, at most once a minute.
constexpr size_t KINDS_WORN_OF_ROOM = 4;

// Pairs of role and agent for which a framework's offer constraints are
// evaluated: a quarter of a second of the actor's time. At least one role is
// evaluated.
constexpr size_t CONSTRAINT_PAIRS_MAX = size_t(1) << 18;

// Pairs evaluated per allocation interval, and without a break for other
// frameworks or agents. The rest waits for the next interval, because a
// framework may change its constraints with each call; exclusion is checked
// again before an agent is offered.
constexpr size_t CONSTRAINT_PAIRS_AT_ONCE = CONSTRAINT_PAIRS_MAX / 4;
constexpr size_t CONSTRAINT_PAIRS_IN_A_ROW = 256;

// Reports of ignored input: rows per message (the protocol's limit), bytes per
// row (the protocol allows 200 characters), bytes quoted per row, and log lines
// per interval.
constexpr size_t ASIDE_ROWS_MAX = 16;
constexpr size_t ASIDE_TEXT_BYTES_MAX = 200;
constexpr size_t ASIDE_QUOTE_BYTES_MAX = 60;
constexpr size_t ASIDE_LINES_MAX = 16;

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_USER_INPUT_BOUNDS_HPP__
