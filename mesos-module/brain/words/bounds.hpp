#ifndef __ALLOCATOR_BRAIN_WORDS_BOUNDS_HPP__
#define __ALLOCATOR_BRAIN_WORDS_BOUNDS_HPP__

#include <cstddef>

namespace allocator {
namespace brain {

// What is taken of the words of frameworks, agents and their users. No honest
// one meets a bound; who does is served as if it had not said the rest (see
// `words.hpp`). All of them stand here, and their reasons.

// A text: a path of a file system is no longer. Sidecars read a good deal more.
constexpr size_t TEXT_BYTES_MAX = 4096;

// A name of a resource: people write them.
constexpr size_t NAME_BYTES_MAX = 256;

// Labels, those that are for a sidecar first: it copies them with all it knows,
// and an event stays far below what it reads (4 MiB).
constexpr size_t LABELS_MAX = 256;
constexpr size_t LABEL_BYTES_MAX = 256 << 10;

// The path of a role that somebody is offered something in: agents name
// directories by it, and each offered resource bears it.
constexpr size_t ROLE_BYTES_MAX = TEXT_BYTES_MAX;

// Levels of the tree that a role competes in: each is walked with every offer.
// Sidecars keep as many. A deeper role stands right below the 63rd.
constexpr size_t ROLE_DEPTH_MAX = 64;

// Roles of a framework, and levels of all of them together: each is a record
// of its own. Those beyond stand right below their top-level role.
constexpr size_t ROLES_OF_FRAMEWORK_MAX = 1024;
constexpr size_t LEVELS_OF_FRAMEWORK_MAX = 4096;

// Work of the sidecar for the frameworks of one principal (of a user, where
// there is none) in an allocation interval, in roles: each role that they join
// or change costs it up to 40 microseconds. Beyond that it hears at once of
// roles that they leave or suppress; the rest waits for the next interval.
constexpr size_t WORKED_OUT_MAX = 8192;

// To suppress or revive a role costs the sidecar less: so many count as one of
// those above.
constexpr size_t SUPPRESSED_AS_ONE = 4;

// What is read takes time, and room in the queue to the sidecar: so many bytes
// count as one of those above.
constexpr size_t BYTES_AS_A_ROLE = 1024;

// Roles that frameworks name, ancestors too: a sidecar binds 65,536 in a
// session.
constexpr size_t ROLES_MAX = 49152;

// Roles that only agents name, for something is used there: all of them
// together, and those that one agent brings. No agent has so many tasks. They
// take room from no framework: 1,024 handles are left for what operators name.
// A sidecar hears of what is beyond as of the nearest role above it.
constexpr size_t USED_ROLES_MAX = 65536 - 1024 - ROLES_MAX;
constexpr size_t LEVELS_OF_AGENT_MAX = USED_ROLES_MAX / 60;

// Of a principal (of a user, where it says none), in all of its frameworks: new
// levels of the tree are given up to half of all roles, and frameworks are
// served in pairs with a role up to half of what a sidecar usually keeps.
constexpr size_t LEVELS_OF_PRINCIPAL_MAX = ROLES_MAX / 2;
constexpr size_t PAIRS_OF_PRINCIPAL_MAX = 65536;

// Minimal offers: alternatives of a role, names of one, and names of all that a
// framework asks for. Each offer is held against those of its role.
constexpr size_t ALTERNATIVES_MAX = 16;
constexpr size_t ALTERNATIVE_NAMES_MAX = 16;
constexpr size_t MINIMUM_NAMES_MAX = 4096;

// A REQUEST: entries, and resources of one; an event must stay small.
constexpr size_t REQUESTS_MAX = 64;
constexpr size_t REQUEST_RESOURCES_MAX = 64;
constexpr size_t REQUEST_BYTES_MAX = 32 << 10;

// Attributes of an agent: a cluster has tens of thousands of agents, and all
// of their attributes travel in a snapshot.
constexpr size_t ATTRIBUTES_MAX = 1024;
constexpr size_t ATTRIBUTE_BYTES_MAX = 64 << 10;

// Of one object of a resource, in thousandths: 8 PB of disk. So 64 bits hold
// the sum of a million objects. Of a resource of ranges, numbers from
// RANGE_NUMBERS_MAX on are left out: a bound on the number itself gives the
// same result however the ranges are cut into objects.
constexpr size_t OBJECT_AMOUNT_MAX = size_t(1) << 43;
constexpr size_t RANGE_NUMBERS_MAX = OBJECT_AMOUNT_MAX / 1000;

// Items of resources of the type SET: their texts, and what each takes beside
// its text. They keep their numbers while anybody has the resource. No resource
// has more of this room than is left to the others; items beyond are not
// offered.
constexpr size_t ITEM_BYTES_MAX = size_t(256) << 20;
constexpr size_t ITEM_BYTES_MORE = 128;

// Reservations on top of each other, as a sidecar hears of them: more than one
// is all that a decision asks about.
constexpr size_t RESERVATION_DEPTH_MAX = ROLE_DEPTH_MAX;

// Kinds that a sidecar keeps apart (`limits.kinds`), as parts of the whole: a
// quarter for resources of names that are not Mesos's own, which agents make
// up, and five eighths for what is reserved. What is left is for Mesos's own
// names and for the rests. Whoever tells of new kinds (an agent, a framework, the
// principal of a reservation) has at most half as many of either part as are
// still free there. So whoever comes next finds room.
constexpr size_t KINDS_NAMED_EIGHTHS = 2;
constexpr size_t KINDS_RESERVED_EIGHTHS = 5;
constexpr size_t KINDS_FREE_OF_OWN = 2;

// A kind keeps its handle as long as the session lasts. Where a quarter of a
// part is taken by what nobody has any more another session begins, once a
// minute at most.
constexpr size_t KINDS_WORN_OF_ROOM = 4;

// Pairs of a role and an agent for which a framework's offer constraints are
// evaluated: a quarter of a second of the actor. Always one role at least.
constexpr size_t CONSTRAINT_PAIRS_MAX = size_t(1) << 18;

// Those that are evaluated in one allocation interval, and in one go before
// others have their turn. The rest waits for the next interval: a framework may
// change its constraints with each call, and whether an agent is excluded is
// asked again before it is offered.
constexpr size_t CONSTRAINT_PAIRS_AT_ONCE = CONSTRAINT_PAIRS_MAX / 4;
constexpr size_t CONSTRAINT_PAIRS_IN_A_ROW = 256;

// What is told of words that are set aside: rows of a message (the protocol's
// bound), bytes of a row's text (it allows 200 characters), bytes of what is
// quoted in it, and lines of the log in an interval.
constexpr size_t ASIDE_ROWS_MAX = 16;
constexpr size_t ASIDE_TEXT_BYTES_MAX = 200;
constexpr size_t ASIDE_QUOTE_BYTES_MAX = 60;
constexpr size_t ASIDE_LINES_MAX = 16;

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_WORDS_BOUNDS_HPP__
