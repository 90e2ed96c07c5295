#include <algorithm>
#include <random>
#include <set>

#include "small_world.hpp"

// Sidecars that say anything at all, from seeds: the module must neither
// fail nor believe what cannot be.

namespace allocator {
namespace session {
namespace {

using Random = std::mt19937;


// A number that is likely to be near a limit.
int64_t oddNumber(Random* random)
{
  const int64_t limits[] = {
      0, 1, 2, 3, AMOUNT_MAX, INT64_MAX, INT64_MIN, UINT32_MAX, -1};

  return (*random)() % 2 == 0
      ? limits[(*random)() % 9]
      : limits[(*random)() % 9] / 2 + int64_t((*random)() % 3);
}


void spoilColumns(wire::Holdings* grants, Random* random)
{
  const int rows = (*random)() % 4;
  const int kinds = (*random)() % 3;

  grants->Clear();

  for (int i = 0; i < rows; ++i) {
    grants->add_framework(oddNumber(random));
    grants->add_role(oddNumber(random));

    if ((*random)() % 8 != 0) {
      grants->add_agent(oddNumber(random));
    }
  }

  for (int i = 0; i < kinds; ++i) {
    grants->add_kind((*random)() % 3);
  }

  for (int i = 0; i < rows * kinds; ++i) {
    grants->add_amount(oddNumber(random));
  }
}


// Turns an honest answer into something else, as bytes.
std::string spoil(wire::SessionResponse response, Random* random)
{
  wire::DecisionBatch* batch =
      response.has_decisions() ? response.mutable_decisions() : nullptr;

  switch ((*random)() % 8) {
    case 0:
      if (batch != nullptr) {
        spoilColumns(batch->add_grants(), random);
      }
      break;
    case 5:
      if (batch != nullptr) {
        batch->set_more((*random)() % 2 == 0);
        batch->mutable_grants()->Clear();
      }
      break;
    case 1:
      if (batch != nullptr) {
        batch->set_sequence(oddNumber(random));
      }
      break;
    case 2:
      if (batch != nullptr) {
        batch->set_cycle(oddNumber(random));
        batch->set_first_decision(oddNumber(random));
      }
      break;
    case 3:
      response.mutable_error()->set_code(
          static_cast<wire::ErrorCode>((*random)() % 20));
      break;
    case 4:
      response.mutable_welcome()->set_message_bytes_max(oddNumber(random));
      break;
    default: break;
  }

  std::string bytes = response.SerializeAsString();

  if ((*random)() % 3 == 0) {
    for (int i = (*random)() % 4; i > 0 && !bytes.empty(); --i) {
      bytes[(*random)() % bytes.size()] = char((*random)());
    }
  }

  if ((*random)() % 6 == 0) {
    bytes.resize((*random)() % (bytes.size() + 1));
  }

  return bytes;
}


// Written apart from `checkGrants`, row by row.
void expectSound(const Decisions& decisions)
{
  size_t rows = 0;

  for (const wire::Holdings& group : decisions.grants) {
    ASSERT_EQ(group.role_size(), group.framework_size());
    ASSERT_EQ(group.agent_size(), group.framework_size());
    ASSERT_EQ(group.amount_size(), group.framework_size() * group.kind_size());
  }

  decisions.each([&](const Decision& decision) {
    ++rows;
    std::set<uint32_t> kinds;
    ASSERT_GE(decision.framework(), 1u);
    ASSERT_GE(decision.role(), 1u);
    ASSERT_GE(decision.agent(), 1u);

    for (size_t column = 0; column < decision.kinds(); ++column) {
      ASSERT_TRUE(kinds.insert(decision.kind(column)).second);
      ASSERT_GE(decision.amount(column), 0);
      ASSERT_LE(decision.amount(column), int64_t(1) << 53);
    }
  });

  ASSERT_EQ(rows, decisions.size());
  ASSERT_TRUE(rows > 0 || !decisions.more);
}


TEST(GarbageTest, RandomBytesOnlyEndTheSession)
{
  for (uint32_t seed = 1; seed <= 5000; ++seed) {
    Random random(seed);
    Session session(1, SessionDeadlines(), DecisionLimits());
    wire::SessionRequest request;
    session.hello(wire::Hello(), TimePoint(), &request);

    std::string bytes(random() % 64, '\0');

    for (char& byte : bytes) {
      byte = char(random());
    }

    const Session::Reply reply = session.receive(bytes, TimePoint());

    if (reply.kind == Session::Reply::Kind::WELCOME) {
      EXPECT_EQ(2u, session.welcome().protocol_version()) << "seed " << seed;
    } else {
      EXPECT_EQ(Session::State::CLOSED, session.state()) << "seed " << seed;
      EXPECT_NE("", reply.message) << "seed " << seed;
    }
  }
}


// One life of a keeper with a sidecar that says odd things now and then.
class HostileWorld : public SmallWorld
{
public:
  explicit HostileWorld(uint32_t seed) : random(seed)
  {
    onDecided = [this](const Decisions& decisions) { take(decisions); };
  }

  void live(int steps)
  {
    keeper->start();

    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      switch (random() % 6) {
        case 0: cycle(); break;
        case 1: cycle({uint32_t(random() % 5 + 1)}); break;
        case 2: pass(random() % 3000); break;
        case 3: converse(); break;
        case 4: sometimesLose(); break;
        default: submit(random() % 200); break;
      }

      ASSERT_LE(link->depth().messages, 8u);
    }
  }

  uint64_t ends() const
  {
    uint64_t sum = 0;

    for (uint64_t count : keeper->counters().ends) {
      sum += count;
    }

    return sum;
  }

private:
  // Like `exchange`, but what the sidecar says may come spoilt, twice, in
  // another order, or not at all.
  void converse()
  {
    std::vector<std::string> answers;
    wire::SessionRequest request;

    while (link->isOpen && link->queue.pop(&request)) {
      if (stream != link->streams) {
        stream = link->streams;
        sidecar = ModelSidecar();
        sidecar.partsPerCycle = random() % 3 + 1;
        nextDecision = 1;
        spoilt = false;
      }

      for (const wire::SessionResponse& answer : sidecar.take(request)) {
        const bool spoils = random() % 16 == 0;
        spoilt = spoilt || spoils;
        answers.push_back(
            spoils ? spoil(answer, &random) : answer.SerializeAsString());

        if (random() % 32 == 0) {
          answers.push_back(answers[random() % answers.size()]);
        }
      }

      // The module keeps to the rules, by what it was sent.
      ASSERT_TRUE(spoilt || sidecar.fault.empty()) << sidecar.fault;

      if (random() % 3 == 0) {
        say(&answers);
      }
    }

    if (random() % 16 == 0) {
      std::shuffle(answers.begin(), answers.end(), random);
    }

    say(&answers);
  }

  void say(std::vector<std::string>* answers)
  {
    for (const std::string& bytes : *answers) {
      wire::SessionResponse response;

      if (!link->isOpen) {
        break;
      }

      if (response.ParseFromString(bytes)) {
        deliver(std::move(response));
      } else {
        link->isOpen = false;
        link->listener->lost("garbage", true);
      }
    }

    answers->clear();
  }

  void sometimesLose()
  {
    if (link->isOpen && random() % 10 == 0) {
      link->isOpen = false;
      link->listener->lost("reset", false);
    }
  }

  void take(const Decisions& decisions)
  {
    expectSound(decisions);
    ASSERT_EQ(nextDecision, decisions.first);
    nextDecision += decisions.size();

    Outcomes outcomes(decisions);

    decisions.each([&](const Decision& decision) {
      switch (random() % 3) {
        case 0: outcomes.offered(); break;
        case 1: outcomes.refused(wire::OUTCOME_REASON_UNKNOWN_AGENT); break;
        default:
          outcomes.partial(decision, std::vector<int64_t>(decision.kinds(), 1));
          break;
      }
    });

    keeper->report(outcomes);
  }

  Random random;
  int stream = 0;
  bool spoilt = false; // The sidecar's books are not the module's any more.
  uint64_t nextDecision = 1;
};


TEST(GarbageTest, AKeeperSurvivesAnySidecar)
{
  uint64_t decided = 0;
  uint64_t ended = 0;

  for (uint32_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    HostileWorld world(seed);
    world.live(400);
    decided += world.decided_;
    ended += world.ends();

    if (HasFailure()) {
      return;
    }
  }

  // Else nothing was tried.
  EXPECT_GT(decided, 1000u);
  EXPECT_GT(ended, 500u);
}

} // namespace {
} // namespace session {
} // namespace allocator {
