#include "brain/books.hpp"

#include <algorithm>
#include <utility>

namespace allocator {
namespace brain {
namespace {

bool isBefore(const Holding& holding, uint32_t framework, uint32_t role)
{
  return holding.framework < framework ||
      (holding.framework == framework && holding.role < role);
}


template <typename Holdings>
auto place(Holdings* held, uint32_t framework, uint32_t role)
    -> decltype(held->begin())
{
  return std::lower_bound(
      held->begin(), held->end(), 0, [=](const Holding& holding, int) {
        return isBefore(holding, framework, role);
      });
}


bool isThere(
    std::vector<Holding>::const_iterator at,
    const std::vector<Holding>& held,
    uint32_t framework,
    uint32_t role)
{
  return at != held.end() && at->framework == framework && at->role == role;
}

} // namespace {


Slot* Books::slot(Agent* agent, uint32_t piece)
{
  auto at = std::lower_bound(
      agent->slots.begin(),
      agent->slots.end(),
      piece,
      [](const Slot& each, uint32_t wanted) { return each.piece < wanted; });

  if (at == agent->slots.end() || at->piece != piece) {
    Slot fresh;
    fresh.piece = piece;
    at = agent->slots.insert(at, fresh);
    pieces->use(piece);
  }

  return &*at;
}


// Which numbers of ranges and sets are free.
void Books::refresh(Agent* agent, Slot* slot)
{
  if (pieces->traits(slot->piece).type == Type::SCALAR) {
    return;
  }

  slot->free = slot->all;
  for (const Holding& holding : agent->held) {
    const Part* part = brain::find(holding.parts, slot->piece);
    if (part != nullptr) {
      slot->free = subtract(slot->free, part->spans);
    }
  }
}


// Slots of which there is nothing any more are given up.
void Books::tidy(Agent* agent)
{
  agent->slots.erase(
      std::remove_if(
          agent->slots.begin(),
          agent->slots.end(),
          [this](const Slot& slot) {
            const bool idle = slot.total == 0 && slot.held == 0;
            if (idle) {
              pieces->disuse(slot.piece);
            }
            return idle;
          }),
      agent->slots.end());
}


void Books::refreshGpus(Agent* agent)
{
  agent->gpus = std::any_of(
      agent->slots.begin(), agent->slots.end(), [this](const Slot& slot) {
        return slot.total > 0 && pieces->traits(slot.piece).name == "gpus";
      });
}


void Books::changeTotal(Agent* agent, uint32_t piece, const Part* after)
{
  Slot* there = slot(agent, piece);
  const int64_t amount = after == nullptr ? 0 : after->amount;

  sums->changeTotal(pieces->row(piece), amount - there->total);
  there->total = amount;
  there->all = after == nullptr ? Spans() : after->spans;
  refresh(agent, there);
}


bool Books::setTotal(uint32_t number, const Parts& after)
{
  if (total(*agents->find(number)) == after) {
    return false;
  }

  Agent* agent = agents->edit(number);

  for (const Part& part : total(*agent)) {
    if (brain::find(after, part.piece) == nullptr) {
      changeTotal(agent, part.piece, nullptr);
    }
  }

  for (const Part& part : after) {
    changeTotal(agent, part.piece, &part);
  }

  tidy(agent);
  refreshGpus(agent);
  return true;
}


void Books::removeAgent(uint32_t number)
{
  Agent* agent = agents->edit(number);

  while (!agent->held.empty()) {
    const Holding last = agent->held.back();
    changeHeld(agent, last.framework, last.role, last.parts, Parts());
    agent->held.pop_back();
  }

  setTotal(number, Parts());
  tidy(agent);
}


// Of a shared piece one copy counts, however many are held.
int64_t Books::counted(uint32_t piece, int64_t amount) const
{
  const Traits& traits = pieces->traits(piece);
  return traits.shared ? std::min(amount, traits.unit) : amount;
}


// Books the difference; the holding itself is for the caller.
void Books::changeHeld(
    Agent* agent,
    uint32_t framework,
    uint32_t role,
    const Parts& before,
    const Parts& after)
{
  auto book = [&](uint32_t piece, int64_t had, int64_t has) {
    slot(agent, piece)->held += has - had;
    sums->changeHeld(
        framework,
        role,
        pieces->row(piece),
        counted(piece, has) - counted(piece, had));
  };

  for (const Part& part : before) {
    const Part* there = brain::find(after, part.piece);
    book(part.piece, part.amount, there == nullptr ? 0 : there->amount);
  }

  for (const Part& part : after) {
    if (brain::find(before, part.piece) == nullptr) {
      book(part.piece, 0, part.amount);
    }
  }
}


Holding* Books::holding(Agent* agent, uint32_t framework, uint32_t role)
{
  auto at = place(&agent->held, framework, role);
  if (!isThere(at, agent->held, framework, role)) {
    at = agent->held.insert(at, Holding{framework, role, Parts()});
  }
  return &*at;
}


void Books::dropHolding(Agent* agent, uint32_t framework, uint32_t role)
{
  auto at = place(&agent->held, framework, role);
  if (isThere(at, agent->held, framework, role)) {
    agent->held.erase(at);
  }
}


const Holding*
Books::find(const Agent& agent, uint32_t framework, uint32_t role)
{
  auto at = place(&agent.held, framework, role);
  return isThere(at, agent.held, framework, role) ? &*at : nullptr;
}


void Books::hold(
    uint32_t number,
    uint32_t framework,
    uint32_t role,
    const Parts& parts)
{
  if (parts.empty()) {
    return;
  }

  Agent* agent = agents->edit(number);
  Holding* there = holding(agent, framework, role);

  // Mostly there was nothing.
  if (there->parts.empty()) {
    changeHeld(agent, framework, role, Parts(), parts);
    there->parts = parts;
  } else {
    const Parts before = there->parts;
    add(parts, &there->parts);
    changeHeld(agent, framework, role, before, there->parts);
  }

  for (const Part& part : parts) {
    if (!part.spans.empty()) {
      Slot* spans = slot(agent, part.piece);
      spans->free = subtract(spans->free, part.spans);
    }
  }
}


Parts Books::release(
    uint32_t number,
    uint32_t framework,
    uint32_t role,
    const Parts& parts)
{
  const Holding* there = find(*agents->find(number), framework, role);
  if (there == nullptr) {
    return Parts();
  }

  const bool all = there->parts == parts;
  Parts released = all ? Parts() : common(there->parts, parts);
  if (!all && released.empty()) {
    return released;
  }

  Agent* agent = agents->edit(number);
  Holding* mine = holding(agent, framework, role);

  // Mostly all that was held comes back.
  if (all) {
    released.swap(mine->parts);
    changeHeld(agent, framework, role, released, Parts());
  } else {
    const Parts before = mine->parts;
    subtract(released, &mine->parts);
    changeHeld(agent, framework, role, before, mine->parts);
  }

  if (mine->parts.empty()) {
    dropHolding(agent, framework, role);
  }

  bool gone = false;
  for (const Part& part : released) {
    Slot* back = slot(agent, part.piece);
    refresh(agent, back);
    gone = gone || back->total == 0;
  }

  if (gone) {
    tidy(agent);
  }

  return released;
}


void Books::removeFramework(uint32_t framework)
{
  for (uint32_t number = 0; number < agents->end(); ++number) {
    const Agent* agent = agents->find(number);

    while (agent != nullptr) {
      auto at = place(&agent->held, framework, 0);
      if (at == agent->held.end() || at->framework != framework) {
        break;
      }

      const uint32_t role = at->role;
      const Parts parts = at->parts;
      release(number, framework, role, parts);
      agent = agents->find(number);
    }
  }
}


int64_t Books::free(const Slot& slot) const
{
  const Traits& traits = pieces->traits(slot.piece);

  if (traits.shared) {
    return slot.total;
  }

  return traits.type == Type::SCALAR
      ? std::max<int64_t>(0, slot.total - slot.held)
      : amountOf(slot.free);
}


Parts Books::free(const Agent& agent) const
{
  Parts result;
  result.reserve(agent.slots.size());

  for (const Slot& slot : agent.slots) {
    const int64_t amount = free(slot);
    if (amount > 0) {
      result.push_back(Part{slot.piece, amount, slot.free});
    }
  }

  return result;
}


Parts Books::total(const Agent& agent)
{
  Parts result;
  for (const Slot& slot : agent.slots) {
    if (slot.total > 0) {
      result.push_back(Part{slot.piece, slot.total, slot.all});
    }
  }
  return result;
}

} // namespace brain {
} // namespace allocator {
