#include <atomic>
#include <functional>
#include <future>
#include <new>

#include <process/clock.hpp>
#include <process/dispatch.hpp>
#include <process/process.hpp>

#include <stout/duration.hpp>

#include "adapter/process.hpp"

#include "brain/user_input/bounds.hpp"

#include "tests/adapter/world.hpp"

// Tests the actor's calls to the master, without a sidecar. Covers all known
// ways in which an allocator can make a master abort.

namespace allocator {
namespace adapter {
namespace {

class OffersTest : public ::testing::Test
{
protected:
  void SetUp() override
  {
    parameters.transport.channel.target = "127.0.0.1:1";
    actor.reset(new AllocatorProcess(parameters));
    process::spawn(actor.get());

    mesos::allocator::Options options;
    options.allocationInterval = Hours(1);

    call([=](AllocatorProcess* allocator) {
      allocator->initialize_(
          options,
          [this](const FrameworkID& id, const Offers& some) {
            if (failures > 0) {
              --failures;
              throw std::bad_alloc();
            }
            for (const auto& role : some) {
              for (const auto& agent : role.second) {
                EXPECT_EQ(role.first, roles[id.value()]);
                for (const Resource& each : agent.second) {
                  EXPECT_EQ(role.first, each.allocation_info().role());
                }
                offered[id.value()] += agent.second;
                made.push_back(agent.second);
              }
            }
          },
          [](const FrameworkID&,
             const hashmap<AgentID, mesos::UnavailableResources>&) {});
    });
  }

  void TearDown() override
  {
    process::terminate(actor.get());
    process::wait(actor.get());
  }

  void call(const std::function<void(AllocatorProcess*)>& function)
  {
    std::promise<void> done;
    AllocatorProcess* allocator = actor.get();
    process::dispatch(actor->self(), std::function<void()>([&]() {
                        function(allocator);
                        done.set_value();
                      }));
    done.get_future().get();
  }

  // Lets the actor finish its queue.
  void settle()
  {
    for (int i = 0; i < 10; ++i) {
      call([](AllocatorProcess*) {});
    }
  }

  FrameworkInfo info(const std::string& role, bool refinement = false)
  {
    FrameworkInfo result;
    result.set_user("user");
    result.set_name("name");
    result.add_roles(role);
    result.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
    if (refinement) {
      result.add_capabilities()->set_type(
          FrameworkInfo::Capability::RESERVATION_REFINEMENT);
    }
    return result;
  }

  void addFramework(
      const FrameworkID& id,
      const std::string& role,
      bool refinement = false)
  {
    roles[id.value()] = role;
    call([&](AllocatorProcess* allocator) {
      allocator->addFramework(id, info(role, refinement), true, {});
    });
  }

  void addAgent(
      const Resources& total,
      const hashmap<FrameworkID, Resources>& used = {})
  {
    std::vector<AgentInfo::Capability> capabilities(2);
    capabilities[0].set_type(AgentInfo::Capability::MULTI_ROLE);
    capabilities[1].set_type(AgentInfo::Capability::HIERARCHICAL_ROLE);
    call([&](AllocatorProcess* allocator) {
      allocator->addSlave(
          AGENT, AgentInfo(), capabilities, None(), total, used);
    });
    settle();
  }

  void recover(const FrameworkID& id, const Resources& resources)
  {
    call([&](AllocatorProcess* allocator) {
      allocator->recoverResources(id, AGENT, resources, None(), false);
    });
  }

  void revive(const FrameworkID& id)
  {
    call([&](AllocatorProcess* allocator) { allocator->reviveOffers(id, {}); });
    settle();
  }

  Resources take(const FrameworkID& id)
  {
    Resources result = offered[id.value()];
    offered[id.value()] = Resources();
    return result;
  }

  session::Parameters parameters;
  std::unique_ptr<AllocatorProcess> actor;
  hashmap<std::string, std::string> roles;
  hashmap<std::string, Resources> offered;
  std::vector<Resources> made;  // One entry per offer.
  std::atomic<int> failures{0}; // Number of offers that will fail.
};


Resources reserved(const std::string& text, const std::string& role)
{
  Resource::ReservationInfo reservation;
  reservation.set_type(Resource::ReservationInfo::DYNAMIC);
  reservation.set_role(role);
  return parse(text).pushReservation(reservation);
}


mesos::Offer::Operation reserve(const Resources& resources)
{
  mesos::Offer::Operation operation;
  operation.set_type(mesos::Offer::Operation::RESERVE);
  operation.mutable_reserve()->mutable_resources()->CopyFrom(resources);
  return operation;
}


TEST_F(OffersTest, AnAgentIsOfferedOnceAndAgainWhenItComesBack)
{
  addFramework(ONE, "eng");
  addAgent(parse("cpus:4;mem:512;ports:[1-9]"));
  const Resources all = allocated("cpus:4;mem:512;ports:[1-9]", "eng");
  EXPECT_EQ(all, take(ONE));

  revive(ONE);
  EXPECT_TRUE(take(ONE).empty());

  recover(ONE, allocated("cpus:1;ports:[2-3]", "eng"));
  revive(ONE);
  EXPECT_EQ(allocated("cpus:1;ports:[2-3]", "eng"), take(ONE));

  recover(ONE, all);
  revive(ONE);
  EXPECT_EQ(all, take(ONE));
}


// A filter lasts at least an interval (here an hour) of elapsed time, even if
// the clock is set back.
TEST_F(OffersTest, FiltersEndThoughTheClockIsSetBack)
{
  addFramework(ONE, "eng");
  addFramework(TWO, "ops"); // Not eligible for these resources.
  addAgent(reserved("cpus:4;mem:512", "eng"));
  Resources all = reserved("cpus:4;mem:512", "eng");
  all.allocate("eng");
  EXPECT_EQ(all, take(ONE));

  process::Clock::pause();
  process::Clock::advance(actor.get(), Hours(10));
  call([&](AllocatorProcess* allocator) {
    allocator->recoverResources(ONE, AGENT, all, mesos::Filters(), false);
  });
  revive(TWO);
  EXPECT_TRUE(take(ONE).empty());

  // Back to the machine's time, ten hours earlier.
  process::Clock::resume();
  process::Clock::pause();
  revive(TWO);
  EXPECT_TRUE(take(ONE).empty());

  // A filter ends with the first cycle of an interval after it expired. The
  // first call of `revive` starts that cycle, because Mesos's timers wait until
  // the old time is reached again.
  process::Clock::advance(actor.get(), Minutes(61));
  revive(TWO);
  revive(TWO);
  EXPECT_EQ(all, take(ONE));
  EXPECT_TRUE(take(TWO).empty());
  process::Clock::resume();
}


TEST_F(OffersTest, WhatAnotherUsesIsNotOffered)
{
  addFramework(ONE, "eng");
  hashmap<FrameworkID, Resources> used;
  used[TWO] = allocated("cpus:3;ports:[1-8]", "ops");
  addAgent(parse("cpus:4;ports:[1-9]"), used);
  EXPECT_EQ(allocated("cpus:1;ports:[9-9]", "eng"), take(ONE));
}


TEST_F(OffersTest, RefinedReservationsNeedTheCapability)
{
  Resource refined = *parse("cpus:1").begin();
  for (const char* role : {"eng", "eng/ads"}) {
    Resource::ReservationInfo* reservation = refined.add_reservations();
    reservation->set_type(Resource::ReservationInfo::DYNAMIC);
    reservation->set_role(role);
  }

  addFramework(ONE, "eng/ads");
  addAgent(refined);
  EXPECT_TRUE(take(ONE).empty());

  addFramework(TWO, "eng/ads", true);
  settle();
  Resources expected = refined;
  expected.allocate("eng/ads");
  EXPECT_EQ(expected, take(TWO));
}


TEST_F(OffersTest, OperationsOfAFrameworkChangeTheTotal)
{
  addFramework(ONE, "eng");
  addAgent(parse("cpus:4;mem:512"));
  const Resources offer = take(ONE);

  Resources after = reserved("cpus:2", "eng");
  after.allocate("eng");
  const ResourceConversion conversion(allocated("cpus:2", "eng"), after);

  call([&](AllocatorProcess* allocator) {
    allocator->updateAllocation(ONE, AGENT, offer, {conversion});
  });
  recover(ONE, after + allocated("cpus:2;mem:512", "eng"));
  revive(ONE);
  EXPECT_EQ(after + allocated("cpus:2;mem:512", "eng"), take(ONE));
}


// The books no longer have the offer, but the master has applied operations to
// it, so the books follow.
TEST_F(OffersTest, OperationsThatTheBooksDoNotKnowOfAreFollowed)
{
  addFramework(ONE, "eng");
  addAgent(parse("cpus:4"));
  const Resources offer = take(ONE);
  call([](AllocatorProcess* allocator) { allocator->suppressOffers(ONE, {}); });
  recover(ONE, offer);

  Resources after = reserved("cpus:2", "eng");
  after.allocate("eng");
  const ResourceConversion conversion(allocated("cpus:2", "eng"), after);
  call([&](AllocatorProcess* allocator) {
    allocator->updateAllocation(ONE, AGENT, offer, {conversion});
  });
  recover(ONE, after + allocated("cpus:2", "eng"));
  revive(ONE);
  EXPECT_EQ(after + allocated("cpus:2", "eng"), take(ONE));
}


TEST_F(OffersTest, AnOperatorConvertsOnlyWhatIsFree)
{
  addFramework(ONE, "eng");
  addAgent(parse("cpus:4;mem:512"));
  recover(ONE, allocated("cpus:1", "eng"));
  take(ONE);

  auto ask = [this](const Resources& wanted) {
    process::Future<Nothing> answer;
    call([&](AllocatorProcess* allocator) {
      answer = allocator->updateAvailable(AGENT, {reserve(wanted)});
    });
    return answer;
  };

  EXPECT_TRUE(ask(reserved("cpus:2", "eng")).isFailed());
  EXPECT_TRUE(ask(reserved("cpus:1", "eng")).isReady());
  revive(ONE);
  Resources expected = reserved("cpus:1", "eng");
  expected.allocate("eng");
  EXPECT_EQ(expected, take(ONE));
}


TEST_F(OffersTest, WhoeverIsUnknownChangesNothing)
{
  addFramework(ONE, "eng");
  addAgent(parse("cpus:4"));
  const AgentID nowhere = agentId("nowhere");
  const FrameworkID nobody = frameworkId("nobody");

  call([&](AllocatorProcess* allocator) {
    allocator->removeSlave(nowhere);
    allocator->updateSlave(nowhere, AgentInfo(), parse("cpus:1"), None());
    allocator->addResourceProvider(nowhere, parse("cpus:1"), {});
    allocator->activateSlave(nowhere);
    allocator->deactivateSlave(nowhere);
    allocator->updateUnavailability(nowhere, None());
    allocator->updateInverseOffer(nowhere, nobody, None(), None(), None());
    allocator->removeFramework(nobody);
    allocator->activateFramework(nobody);
    allocator->deactivateFramework(nobody);
    allocator->updateFramework(nobody, info("eng"), {});
    allocator->requestResources(nobody, {});
    allocator->suppressOffers(nobody, {});
    allocator->reviveOffers(nobody, {});
    allocator->transitionOfferedToAllocated(
        nowhere, allocated("cpus:1", "eng"));
    allocator->recoverResources(
        nobody, AGENT, allocated("cpus:1", "eng"), None(), true);
    allocator->recoverResources(
        ONE, nowhere, allocated("cpus:1", "eng"), None(), true);
    EXPECT_TRUE(allocator->updateAvailable(nowhere, {}).isFailed());
    allocator->addSlave(AGENT, AgentInfo(), {}, None(), parse("cpus:9"), {});
    allocator->addFramework(ONE, info("ops"), true, {});
  });
  settle();
  EXPECT_EQ(allocated("cpus:4", "eng"), take(ONE));
}


// If the callback throws, the resources of the offer are free again.
TEST_F(OffersTest, WhatTheMasterCouldNotBeOfferedIsFreeAgain)
{
  addFramework(ONE, "eng");
  failures = 1;
  addAgent(parse("cpus:4;mem:512;ports:[1-9]"));
  EXPECT_EQ(0, failures.load());
  EXPECT_TRUE(take(ONE).empty());

  revive(ONE);
  EXPECT_EQ(allocated("cpus:4;mem:512;ports:[1-9]", "eng"), take(ONE));
}


// The adapter must forget the resource classes that the brain has forgotten,
// even if an exception is thrown; otherwise it would use numbers that the brain
// does not know.
TEST_F(OffersTest, WhatIsForgottenIsForgottenWhateverIsThrown)
{
  addFramework(ONE, "eng");
  addAgent(parse("cpus:4") + reserved("cpus:2", "eng"));
  const Resources first = take(ONE);
  mesos::Filters filters;
  filters.set_refuse_seconds(1);

  // A filter is the last reference to the reserved class; it expires in the
  // cycle whose offers fail.
  call([&](AllocatorProcess* allocator) {
    allocator->recoverResources(ONE, AGENT, first, filters, false);
    allocator->updateSlave(AGENT, AgentInfo(), parse("cpus:4"), None());
  });
  settle();
  take(ONE);
  process::Clock::pause();
  failures = 1;
  process::Clock::advance(Hours(2));
  process::Clock::settle();
  process::Clock::resume();
  settle();

  call([&](AllocatorProcess* allocator) {
    allocator->updateSlave(
        AGENT,
        AgentInfo(),
        parse("cpus:4") + reserved("cpus:2", "eng"),
        None());
  });
  take(ONE);
  call([&](AllocatorProcess* allocator) {
    allocator->removeFramework(ONE);
    allocator->addFramework(ONE, info("eng"), true, {});
  });
  settle();

  Resources expected = parse("cpus:4") + reserved("cpus:2", "eng");
  expected.allocate("eng");
  EXPECT_EQ(expected, take(ONE));
}


// Constraints that allow only agents of one zone.
mesos::allocator::FrameworkOptions only(const std::string& zone)
{
  mesos::scheduler::OfferConstraints constraints;
  auto* one = (*constraints.mutable_role_constraints())["eng"]
                  .add_groups()
                  ->add_attribute_constraints();
  one->mutable_selector()->set_attribute_name("zone");
  one->mutable_predicate()->mutable_text_equals()->set_value(zone);

  mesos::allocator::FrameworkOptions result;
  result.offerConstraintsFilter =
      mesos::allocator::OfferConstraintsFilter::create(
          {{Megabytes(4), 100}}, std::move(constraints))
          .get();
  return result;
}


class ConstraintsTest : public OffersTest
{
protected:
  void SetUp() override
  {
    OffersTest::SetUp();
    addFramework(ONE, "eng");
  }

  void update(mesos::allocator::FrameworkOptions&& options)
  {
    call([&](AllocatorProcess* allocator) {
      allocator->updateFramework(ONE, info("eng"), std::move(options));
    });
    revive(ONE);
  }

  void
  add(const std::string& zone, const std::string& total, const std::string& id)
  {
    AgentInfo agent;
    mesos::Attribute* attribute = agent.add_attributes();
    attribute->set_name("zone");
    attribute->set_type(mesos::Value::TEXT);
    attribute->mutable_text()->set_value(zone);
    std::vector<AgentInfo::Capability> capabilities(1);
    capabilities[0].set_type(AgentInfo::Capability::MULTI_ROLE);
    call([&](AllocatorProcess* allocator) {
      allocator->addSlave(
          agentId(id), agent, capabilities, None(), parse(total), {});
    });
    settle();
  }

  size_t evaluated()
  {
    size_t result = 0;
    call([&](AllocatorProcess* allocator) {
      result = allocator->evaluatedPairs();
    });
    return result;
  }
};


TEST_F(ConstraintsTest, HoldForAgentsBeforeAndAfterThem)
{
  // First agents added later, then existing ones.
  update(only("b"));
  add("a", "cpus:1", "a");
  add("b", "cpus:2", "b");
  EXPECT_EQ(allocated("cpus:2", "eng"), take(ONE));

  update(only("a"));
  EXPECT_EQ(allocated("cpus:1", "eng"), take(ONE));
  call([](AllocatorProcess* allocator) {
    allocator->recoverResources(
        ONE, agentId("b"), allocated("cpus:2", "eng"), None(), false);
  });
  revive(ONE);
  EXPECT_TRUE(take(ONE).empty());

  update({});
  EXPECT_EQ(allocated("cpus:2", "eng"), take(ONE));
}


// A framework may change its constraints with each call.
TEST_F(ConstraintsTest, ThatChangeAllTheTimeCostABoundedTime)
{
  constexpr int OF_A_ZONE = 64;
  constexpr size_t AGENTS = 2 * OF_A_ZONE;
  constexpr size_t MOST =
      brain::CONSTRAINT_PAIRS_AT_ONCE + brain::CONSTRAINT_PAIRS_IN_A_ROW;

  process::Clock::pause();
  update(only("nowhere"));
  for (int i = 0; i < OF_A_ZONE; ++i) {
    add("a", "cpus:1", "a" + std::to_string(i));
    add("b", "cpus:1", "b" + std::to_string(i));
  }
  EXPECT_TRUE(take(ONE).empty());

  call([&](AllocatorProcess* allocator) {
    for (size_t i = 0; i < 2 * MOST / AGENTS; ++i) {
      allocator->updateFramework(
          ONE, info("eng"), only(i % 2 == 0 ? "a" : "b"));
    }
    allocator->updateFramework(ONE, info("eng"), only("a"));
  });
  EXPECT_LE(brain::CONSTRAINT_PAIRS_AT_ONCE, evaluated());
  EXPECT_GE(MOST, evaluated());

  // Constraints not evaluated yet are enforced: excluded agents are not
  // offered, then or later.
  const Resources all = parse("cpus:" + std::to_string(OF_A_ZONE));
  revive(ONE);
  Resources taken = take(ONE);
  taken.unallocate();
  EXPECT_TRUE(all.contains(taken));

  const size_t before = evaluated();
  process::Clock::advance(Hours(1));
  process::Clock::settle();
  EXPECT_LT(before, evaluated());
  revive(ONE);
  Resources rest = take(ONE);
  rest.unallocate();
  EXPECT_EQ(all, taken + rest);
  process::Clock::resume();
}


// Each pair of framework and agent costs time, even if no role is evaluated.
TEST_F(ConstraintsTest, OfNoRoleCostABoundedTime)
{
  for (int i = 0; i < 600; ++i) {
    add("a", "cpus:1", std::to_string(i));
  }
  FrameworkInfo nowhere = info("eng");
  nowhere.clear_roles();
  const size_t before = evaluated();
  call([&](AllocatorProcess* allocator) {
    allocator->updateFramework(ONE, nowhere, only("b"));
  });
  EXPECT_EQ(before + brain::CONSTRAINT_PAIRS_IN_A_ROW, evaluated());
}


// Frameworks without constraints cost nothing per agent, and little per update.
TEST_F(ConstraintsTest, OfWhomHasNoneAreHardlyEvaluated)
{
  for (int i = 0; i < 600; ++i) {
    add("a", "cpus:1", std::to_string(i));
  }
  EXPECT_EQ(0u, evaluated());
  update({});
  EXPECT_EQ(brain::CONSTRAINT_PAIRS_IN_A_ROW, evaluated());
}


// Updates without a change of attributes, however many, keep the filters.
TEST_F(OffersTest, ManyAttributesAreComparedInAnyOrder)
{
  AgentInfo before;
  for (size_t i = 0; i <= brain::ATTRIBUTES_MAX; ++i) {
    mesos::Attribute* attribute = before.add_attributes();
    attribute->set_name("attribute-" + std::to_string(i));
    attribute->set_type(mesos::Value::TEXT);
    attribute->mutable_text()->set_value("value");
  }

  const auto update = [&](const AgentInfo& now) {
    call([&](AllocatorProcess* allocator) {
      allocator->updateSlave(AGENT, now, None(), None());
    });
    settle();
  };

  addFramework(ONE, "eng");
  addAgent(parse("cpus:4"));
  update(before);
  mesos::Filters filters;
  filters.set_refuse_seconds(1e6);
  const Resources all = take(ONE);
  call([&](AllocatorProcess* allocator) {
    allocator->recoverResources(ONE, AGENT, all, filters, false);
  });

  AgentInfo other = before;
  other.set_hostname("other");
  other.mutable_attributes()->SwapElements(0, brain::ATTRIBUTES_MAX);
  update(other);
  EXPECT_TRUE(take(ONE).empty());

  other.mutable_attributes(0)->mutable_text()->set_value("another");
  update(other);
  EXPECT_EQ(all, take(ONE));
}


TEST_F(OffersTest, NothingIsOfferedWithinABracket)
{
  addFramework(ONE, "eng");
  call([](AllocatorProcess* allocator) { allocator->pause(); });
  addAgent(parse("cpus:4"));
  revive(ONE);
  EXPECT_TRUE(take(ONE).empty());

  call([](AllocatorProcess* allocator) { allocator->resume(); });
  revive(ONE);
  EXPECT_EQ(allocated("cpus:4", "eng"), take(ONE));
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
