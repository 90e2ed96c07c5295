#ifndef __ALLOCATOR_BRAIN_USER_INPUT_BOUNDS_HPP__
#define __ALLOCATOR_BRAIN_USER_INPUT_BOUNDS_HPP__

#include <cstddef>

namespace allocator {
namespace brain {

// Limits on the input of frameworks, agents and their users, with reasons.
// Ordinary input stays below them; input beyond a limit is ignored (see
// `user_input.hpp`).

// Texts in general: enough for a file system path. Sidecars accept considerably
// more.
constexpr size_t TEXT_BYTES_MAX = 4096;

// Resource names. They are written by hand and therefore short.
constexpr size_t NAME_BYTES_MAX = 256;

// Labels of a framework; if there are too many, those for the sidecar are kept.
// The sidecar copies labels with its state, and an event must stay far below
// the 4 MiB that the sidecar reads.
constexpr size_t LABELS_MAX = 256;
constexpr size_t LABEL_BYTES_MAX = 256 << 10;

// Path of a role that is offered resources: agents use the path in directory
// names, and each offered resource contains it.
constexpr size_t ROLE_BYTES_MAX = TEXT_BYTES_MAX;

// Depth of the role tree: each offer visits all levels of its role. The sidecar
// has the same limit. A deeper role becomes a child of its ancestor at level
// 63.
constexpr size_t ROLE_DEPTH_MAX = 64;

// Roles of a framework, and levels of the tree for all its roles together; each
// level takes a record. If the levels exceed the limit, further roles become
// children of their top-level role.
constexpr size_t ROLES_OF_FRAMEWORK_MAX = 1024;
constexpr size_t LEVELS_OF_FRAMEWORK_MAX = 4096;

// Sidecar work per principal (or user) and allocation interval, in roles: each
// role joined or changed costs up to 40 microseconds. Beyond the limit, only
// roles that are left or suppressed are reported at once; the rest waits for
// the next interval.
constexpr size_t WORKED_OUT_MAX = 8192;

// Suppressing or reviving this many roles counts as one role.
constexpr size_t SUPPRESSED_AS_ONE = 4;

// This many bytes of a message count as one role, because the sidecar takes
// time to read them and the outgoing queue is limited.
constexpr size_t BYTES_AS_A_ROLE = 1024;

// Roles that frameworks name, and their ancestors. A sidecar accepts 65,536
// roles per session.
constexpr size_t ROLES_MAX = 49152;

// Roles that only agents name, in total and per agent: more than an agent has
// tasks. They do not count against ROLES_MAX. 1,024 handles remain for roles
// that operators name. A role beyond the limit is reported as its nearest known
// ancestor.
constexpr size_t USED_ROLES_MAX = 65536 - 1024 - ROLES_MAX;
constexpr size_t LEVELS_OF_AGENT_MAX = USED_ROLES_MAX / 60;

// Per principal (or user), over all its frameworks: new levels of the role
// tree, half of all roles; and pairs of framework and role, half of what a
// sidecar usually keeps.
constexpr size_t LEVELS_OF_PRINCIPAL_MAX = ROLES_MAX / 2;
constexpr size_t PAIRS_OF_PRINCIPAL_MAX = 65536;

// Minimums of offers: alternatives per role, names per alternative, names per
// framework. Each offer is compared with all alternatives of its role.
constexpr size_t ALTERNATIVES_MAX = 16;
constexpr size_t ALTERNATIVE_NAMES_MAX = 16;
constexpr size_t MINIMUM_NAMES_MAX = 4096;

// A REQUEST: entries, resources per entry, and bytes of names, amounts and
// agent ids. Events must stay small, and the module keeps the last REQUEST of
// each framework.
constexpr size_t REQUESTS_MAX = 64;
constexpr size_t REQUEST_RESOURCES_MAX = 64;
constexpr size_t REQUEST_BYTES_MAX = 8 << 10;

// Attributes of an agent. A cluster has tens of thousands of agents, and a
// snapshot carries all their attributes.
constexpr size_t ATTRIBUTES_MAX = 1024;
constexpr size_t ATTRIBUTE_BYTES_MAX = 64 << 10;

// Amount of one object, in thousandths (8 PB of disk), so that 64 bits hold the
// sum of a million objects. Ranges drop numbers from RANGE_NUMBERS_MAX on:
// unlike a limit on their count, this has the same result however ranges are
// divided into objects.
constexpr size_t OBJECT_AMOUNT_MAX = size_t(1) << 43;
constexpr size_t RANGE_NUMBERS_MAX = OBJECT_AMOUNT_MAX / 1000;

// Items of SET resources: total bytes of their texts, and overhead per item. A
// resource class keeps its items while it exists. Its items may use at most
// half of what the items of all other classes leave free; further items are
// not offered.
constexpr size_t ITEM_BYTES_MAX = size_t(256) << 20;
constexpr size_t ITEM_BYTES_MORE = 128;

// Depth of reservations as reported to the sidecar. Decisions only depend on
// whether it exceeds one.
constexpr size_t RESERVATION_DEPTH_MAX = ROLE_DEPTH_MAX;

// How the kinds that the sidecar distinguishes (`limits.kinds`) are divided, in
// eighths: two for names that are not Mesos's own, which agents invent, and
// five for reserved resources. The rest is for Mesos's own names and for
// overflow kinds. A reporter (agent, framework, or principal of a reservation)
// may create another kind in a part only if its kinds there number less than
// half of the free ones, so that room remains for other reporters.
constexpr size_t KINDS_NAMED_EIGHTHS = 2;
constexpr size_t KINDS_RESERVED_EIGHTHS = 5;
constexpr size_t KINDS_FREE_OF_OWN = 2;

// Kinds keep their handles for the session. If unused kinds occupy a quarter of
// one of these parts, a new session begins, at most once a minute.
constexpr size_t KINDS_WORN_OF_ROOM = 4;

// Pairs of role and agent for which one framework's offer constraints are
// evaluated, which takes a quarter of a second of the actor's time. At least
// one role is evaluated.
constexpr size_t CONSTRAINT_PAIRS_MAX = size_t(1) << 18;

// Pairs evaluated per allocation interval, because a framework may change its
// constraints with each call; and pairs evaluated before another framework or
// agent has its turn. The rest waits for the next interval; offers are checked
// again before they are made.
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
