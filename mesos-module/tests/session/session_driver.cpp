#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "session/keeper.hpp"
#include "session/transport.hpp"

#include "tests/session/loop.hpp"
#include "tests/session/small_master.hpp"

// Runs a small master with a real sidecar and prints what happens, one JSON
// object per line. Reads commands from standard input, one per line:
//
//     hold      stop cycles; once everything is answered, print the books
//     resume    continue
//     load N    submit N events as fast as they are accepted, print the time
//     stop      end in an orderly way, as at the end of the input
//
// Exits with status 3 as soon as its ledger is wrong.

namespace allocator {
namespace session {
namespace {

constexpr Duration kStatsEvery(100);

struct Settings
{
  TransportOptions transport;
  KeeperOptions keeper;
  SmallMaster::Options master;
  Duration interval{100};
};


// Parses `--name value`; returns false for an unknown name.
bool parse(const std::string& name, const std::string& value, Settings* s)
{
  const auto number = [&value]() {
    return strtoll(value.c_str(), nullptr, 10);
  };
  const auto duration = [&number]() { return Duration(number()); };

  if (name == "--target") s->transport.channel.target = value;
  else if (name == "--tls-ca")
    s->transport.channel.tlsCa = value;
  else if (name == "--tls-cert")
    s->transport.channel.tlsCert = value;
  else if (name == "--tls-key")
    s->transport.channel.tlsKey = value;
  else if (name == "--tls-name")
    s->transport.channel.tlsName = value;
  else if (name == "--queue")
    s->transport.queueMessagesMax = number();
  else if (name == "--receive-bytes")
    s->transport.channel.receiveBytesMax = number();
  else if (name == "--keepalive-ms")
    s->transport.channel.keepaliveInterval = duration();
  else if (name == "--welcome-ms")
    s->keeper.deadlines.welcome = duration();
  else if (name == "--snapshot-ms")
    s->keeper.deadlines.snapshot = duration();
  else if (name == "--answer-ms")
    s->keeper.deadlines.answer = duration();
  else if (name == "--refused-ms")
    s->keeper.refused.max = duration();
  else if (name == "--instance")
    s->keeper.hello.set_instance_id(value);
  else if (name == "--started-us")
    s->keeper.hello.set_instance_started_us(number());
  else if (name == "--interval-ms")
    s->interval = duration();
  else if (name == "--agents")
    s->master.agents = number();
  else if (name == "--frameworks")
    s->master.frameworks = number();
  else if (name == "--seed")
    s->master.seed = number();
  else if (name == "--filters")
    s->master.filters = number();
  else if (name == "--churn")
    s->master.churn = number() != 0;
  else
    return false;

  return true;
}


std::string quoted(const std::string& text)
{
  std::string json = "\"";

  for (char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
    }

    json += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }

  return json + "\"";
}


class Driver : public Keeper::Owner
{
public:
  Driver(const Settings& _settings, Loop* _loop)
    : settings(_settings), loop(_loop), master(_settings.master)
  {
  }

  // Returns an error in the options, or an empty string.
  std::string start()
  {
    settings.keeper.seed = settings.master.seed;
    settings.keeper.clockMs = []() {
      return std::chrono::duration_cast<Duration>(
                 std::chrono::system_clock::now().time_since_epoch())
          .count();
    };

    std::string error;
    std::unique_ptr<Transport> transport(new Transport(
        settings.transport,
        [this](std::function<void()> function) {
          loop->post(std::move(function));
        },
        &error));

    if (error.empty()) {
      keeper.reset(new Keeper(settings.keeper, this, std::move(transport)));
      keeper->start();
    }

    return error;
  }

  void run()
  {
    TimePoint next = Clock::now();
    TimePoint say = next + kStatsEvery;

    while (!stopping) {
      next += settings.interval;
      loop->runUntil(next, [this]() { return stopping; });
      tick();

      if (Clock::now() >= say) {
        sayStats();
        say += kStatsEvery;
      }
    }

    sayStats();
    keeper->stop();
    keeper.reset();
    say_("stopped", "");
  }

  void command(const std::string& line)
  {
    if (line == "hold") {
      holding = true;
    } else if (line == "resume") {
      holding = false;
      held = false;
    } else if (line.compare(0, 5, "load ") == 0) {
      load(strtoul(line.c_str() + 5, nullptr, 10));
    } else {
      stopping = true;
    }
  }

  void welcomed(const wire::Welcome&, size_t chunkBytesMax) override
  {
    const TimePoint begin = Clock::now();
    SnapshotWriter writer(chunkBytesMax);
    master.describe(&writer);
    keeper->snapshot(writer.take(true));
    snapshotAt = Clock::now();
    say_("snapshot", ",\"ms\":" + since(begin));
  }

  void connected(const wire::Welcome& welcome) override
  {
    say_(
        "connected",
        ",\"sidecar\":" + quoted(welcome.sidecar_id()) +
            ",\"applied_ms\":" + since(snapshotAt));
  }

  void decided(Decisions&& decisions) override
  {
    keeper->report(master.offer(decisions));
    check();
  }

  void ended(const Keeper::End& end) override
  {
    say_(
        "ended",
        std::string(",\"cause\":") + quoted(causeName(end.cause)) +
            ",\"reason\":" + quoted(end.reason) +
            ",\"was_connected\":" + (end.wasConnected ? "true" : "false") +
            ",\"retry_ms\":" + std::to_string(end.retryIn.count()));
  }

private:
  static std::string since(TimePoint begin)
  {
    return std::to_string(
        std::chrono::duration_cast<Duration>(Clock::now() - begin).count());
  }

  SmallMaster::Send sender()
  {
    return [this](wire::Event&& event) {
      return keeper->submit(std::move(event));
    };
  }

  void tick()
  {
    if (!holding) {
      master.live(sender());
      keeper->cycle({});
    } else if (!held && keeper->connected() && settled()) {
      held = true;
      say_("books", ",\"holdings\":" + master.holdings());
    }

    check();
  }

  // Whether no batch has been unanswered for 200 ms; in that time pending
  // outcomes are sent, too.
  bool settled()
  {
    if (keeper->stats().unanswered > 0) {
      quietTicks = 0;
    } else {
      ++quietTicks;
    }

    return quietTicks > 200 / settings.interval.count() + 1;
  }

  // A burst of events with no effect on the books.
  void load(size_t count)
  {
    const TimePoint begin = Clock::now();
    size_t taken = 0;
    Duration longest(0);

    for (size_t i = 0; i < count; ++i) {
      wire::Event event;
      event.mutable_revive()->set_framework(i % settings.master.frameworks + 1);

      const TimePoint before = Clock::now();
      taken += keeper->submit(std::move(event)) > 0 ? 1 : 0;
      longest = std::max(
          longest, std::chrono::duration_cast<Duration>(Clock::now() - before));
    }

    say_(
        "loaded",
        ",\"taken\":" + std::to_string(taken) +
            ",\"longest_ms\":" + std::to_string(longest.count()) + ",\"ms\":" +
            std::to_string(
                std::chrono::duration_cast<Duration>(Clock::now() - begin)
                    .count()));
  }

  void check()
  {
    const std::string wrong = master.check();

    if (!wrong.empty()) {
      say_("violation", ",\"what\":" + quoted(wrong));
      _exit(3);
    }
  }

  void sayStats()
  {
    const Stats c = keeper->stats();
    std::string fields = std::string(",\"connected\":") +
        (c.connected ? "true" : "false") +
        ",\"session_age_ms\":" + std::to_string(c.sessionAge.count());

    const std::vector<std::pair<const char*, uint64_t>> numbers = {
        {"attempts", c.attempts},
        {"sessions", c.sessions},
        {"resyncs", c.resyncs},
        {"events", c.events},
        {"batches", c.batches},
        {"cycles", c.cycles},
        {"decisions", c.decisions},
        {"offers", master.offers()},
        {"queue_messages", c.queueMessages},
        {"queue_bytes", c.queueBytes},
        {"unanswered", c.unanswered},
        {"round_trip_p50_us", c.roundTripP50.count()},
        {"round_trip_p90_us", c.roundTripP90.count()},
        {"round_trip_p99_us", c.roundTripP99.count()},
        {"round_trip_max_us", c.roundTripMax.count()}};

    for (const auto& each : numbers) {
      fields +=
          std::string(",\"") + each.first + "\":" + std::to_string(each.second);
    }

    fields += ",\"ends\":{";

    for (size_t cause = 0; cause < CAUSE_COUNT; ++cause) {
      fields += (cause > 0 ? "," : "") +
          quoted(causeName(static_cast<Cause>(cause))) + ":" +
          std::to_string(c.ends[cause]);
    }

    fields += "},\"outcomes\":[";

    for (size_t reason = 0; reason < c.outcomes.size(); ++reason) {
      fields += (reason > 0 ? "," : "") + std::to_string(c.outcomes[reason]);
    }

    say_("counters", fields + "]");
  }

  void say_(const char* event, const std::string& fields)
  {
    const int64_t ms =
        std::chrono::duration_cast<Duration>(Clock::now() - begin).count();

    printf(
        "{\"event\":\"%s\",\"at_ms\":%" PRId64 "%s}\n",
        event,
        ms,
        fields.c_str());
    fflush(stdout);
  }

  Settings settings;
  Loop* const loop;
  SmallMaster master;
  std::unique_ptr<Keeper> keeper;

  const TimePoint begin = Clock::now();
  TimePoint snapshotAt; // When the last snapshot was sent.
  bool stopping = false;
  bool holding = false;
  bool held = false;
  int quietTicks = 0;
};


int run(int argc, char** argv)
{
  Settings settings;
  settings.keeper.hello.set_master_id("driver");
  settings.keeper.hello.set_instance_id("driver");
  settings.keeper.hello.set_mesos_version("1.11.0");
  settings.keeper.writeStats = [](wire::ModuleFigures* figures) {
    figures->set_fallback_cycles(1);
  };
  settings.keeper.statsInterval = Duration(200);
  settings.keeper.hello.mutable_options()->set_allocation_interval_ms(100);

  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !parse(argv[i], argv[i + 1], &settings)) {
      fprintf(stderr, "%s is no option, or has no value\n", argv[i]);
      return 2;
    }
  }

  Loop loop;
  Driver driver(settings, &loop);
  const std::string error = driver.start();

  if (!error.empty()) {
    fprintf(stderr, "%s\n", error.c_str());
    return 2;
  }

  std::thread reader([&]() {
    std::string line;

    do {
      line.clear();
      std::getline(std::cin, line);
      loop.post([&driver, line]() { driver.command(line); });
    } while (!line.empty() && line != "stop");
  });

  driver.run();
  reader.join();
  return 0;
}

} // namespace {
} // namespace session {
} // namespace allocator {


int main(int argc, char** argv)
{
  return allocator::session::run(argc, argv);
}
