#include "tests/session/small_world.hpp"
#include "tests/spoil.hpp"

// Sidecars that send corrupted answers, random from a seed: the module must
// neither fail nor accept invalid decisions.

namespace allocator {
namespace session {
namespace {

TEST(GarbageTest, RandomBytesOnlyEndTheSession)
{
  for (uint32_t seed = 1; seed <= 5000; ++seed) {
    SeededChoices choices(seed);
    Session session(1, SessionDeadlines(), DecisionLimits());
    wire::SessionRequest request;
    session.hello(wire::Hello(), TimePoint(), &request);

    const Session::Reply reply =
        session.receive(nonsense(64, &choices), TimePoint());

    if (reply.kind == Session::Reply::Kind::WELCOME) {
      EXPECT_EQ(2u, session.welcome().protocol_version()) << "seed " << seed;
    } else {
      EXPECT_EQ(Session::State::CLOSED, session.state()) << "seed " << seed;
      EXPECT_NE("", reply.message) << "seed " << seed;
    }
  }
}


// A keeper with a sidecar that sometimes sends invalid answers.
class HostileWorld : public SmallWorld
{
public:
  explicit HostileWorld(uint32_t seed) : choices(seed)
  {
    onDecided = [this](const Decisions& decisions) { take(decisions); };
  }

  void live(int steps)
  {
    keeper->start();

    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      switch (choices.draw(6)) {
        case 0: cycle(); break;
        case 1: cycle({choices.draw(5) + 1}); break;
        case 2: pass(choices.draw(3000)); break;
        case 3: converse(); break;
        case 4: sometimesLose(); break;
        default: submit(choices.draw(200)); break;
      }

      ASSERT_LE(link->depth().messages, 8u);
    }
  }

  uint64_t ends() const
  {
    uint64_t sum = 0;

    for (uint64_t count : keeper->stats().ends) {
      sum += count;
    }

    return sum;
  }

private:
  // Like `exchange`, but answers may be corrupted, repeated, reordered or lost.
  void converse()
  {
    std::vector<std::string> answers;
    wire::SessionRequest request;

    while (link->isOpen && link->queue.pop(&request)) {
      if (stream != link->streams) {
        stream = link->streams;
        sidecar = ModelSidecar();
        sidecar.partsPerCycle = choices.draw(3) + 1;
        nextDecision = 1;
        spoilt = false;
      }

      for (const wire::SessionResponse& answer : sidecar.take(request)) {
        const bool spoils = choices.draw(16) == 0;
        spoilt = spoilt || spoils;
        answers.push_back(
            spoils ? spoil(answer, &choices) : answer.SerializeAsString());

        if (choices.draw(32) == 0) {
          answers.push_back(answers[choices.draw(uint32_t(answers.size()))]);
        }
      }

      // The module obeys the protocol as long as the sidecar does.
      ASSERT_TRUE(spoilt || sidecar.fault.empty()) << sidecar.fault;

      if (choices.draw(3) == 0) {
        say(&answers);
      }
    }

    if (choices.draw(16) == 0) {
      for (size_t i = answers.size(); i > 1; --i) {
        std::swap(answers[i - 1], answers[choices.draw(uint32_t(i))]);
      }
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
    if (link->isOpen && choices.draw(10) == 0) {
      link->isOpen = false;
      link->listener->lost("reset", false);
    }
  }

  void take(const Decisions& decisions)
  {
    ASSERT_EQ("", unsound(decisions));
    ASSERT_EQ(nextDecision, decisions.first);
    nextDecision += decisions.size();

    Outcomes outcomes(decisions);

    decisions.each([&](const Decision& decision) {
      switch (choices.draw(3)) {
        case 0: outcomes.offered(); break;
        case 1: outcomes.refused(wire::OUTCOME_REASON_UNKNOWN_AGENT); break;
        default:
          outcomes.partial(decision, std::vector<int64_t>(decision.kinds(), 1));
          break;
      }
    });

    keeper->report(outcomes);
  }

  SeededChoices choices;
  int stream = 0;
  bool spoilt = false; // The sidecar's state no longer matches the module's.
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

  // Make sure that the test covers decisions and ends.
  EXPECT_GT(decided, 1000u);
  EXPECT_GT(ended, 500u);
}

} // namespace {
} // namespace session {
} // namespace allocator {
