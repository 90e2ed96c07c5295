// Declares what the adapter uses of Mesos, so that its sources compile without
// a Mesos. Nothing is defined, so the result cannot be linked. This is written
// by hand from Mesos's documented interface: only a build with MESOS_ROOT shows
// that the adapter fits a Mesos.
#ifndef __ALLOCATOR_TESTS_MESOS_INTERFACE_HPP__
#define __ALLOCATOR_TESTS_MESOS_INTERFACE_HPP__

#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "messages.pb.h"

// clang-format off
#define MESOS_VERSION "0"
#define MESOS_MODULE_API_VERSION "0"
#define LOG(severity) log##severity()
std::ostream& logINFO(); std::ostream& logWARNING(); std::ostream& logERROR();
struct Nothing {};
struct None {};
struct Error { explicit Error(const std::string& message); };
template <typename T> struct Option {
  Option(const None& = None()); Option(const T& value);
  bool isSome() const; bool isNone() const;
  const T& get() const; const T* operator->() const;
};
template <typename T> struct Try {
  Try(const T& value); Try(const Error& error);
  bool isError() const; const T& get() const; const std::string& error() const;
};
template <typename K, typename V> using hashmap = std::unordered_map<K, V>;
template <typename T> using hashset = std::unordered_set<T>;
template <typename T> std::string stringify(const T& value);
namespace lambda { using std::function; }
namespace id { struct UUID { static UUID random(); std::string toString() const; }; }

struct Duration { explicit Duration(int64_t = 0); double ms() const; double us() const; };
using Milliseconds = Duration; using Hours = Duration;

namespace std {
template <> struct hash<mesos::FrameworkID> { size_t operator()(const mesos::FrameworkID&) const; };
template <> struct hash<mesos::SlaveID> { size_t operator()(const mesos::SlaveID&) const; };
}

namespace process {
struct Failure { explicit Failure(const std::string& message); };
template <typename T> struct Future {
  Future(const T& value); Future(const Failure& failure);
  bool isFailed() const; const std::string& failure() const;
  const Future& onReady(const std::function<void(const T&)>& f) const;
};
template <typename T> struct Promise {
  bool associate(const Future<T>&); Future<T> future() const;
};
struct UPID {};
template <typename T> struct PID : UPID {};
struct DispatchEvent;
struct Time { Duration duration() const; };
struct Clock { static Time now(); };
std::string address();
namespace ID { std::string generate(const std::string& prefix); }

namespace http {
namespace authentication { struct Principal; }
struct Request { struct { hashmap<std::string, std::string> query; } url; };
struct Response { hashmap<std::string, std::string> headers; };
struct OK : Response { explicit OK(const std::string& body); };
struct BadRequest : Response { explicit BadRequest(const std::string& body); };
std::string encode(const std::string& text);
using User = Option<authentication::Principal>;
}

std::string TLDR(const std::string& text);
template <typename... Lines> std::string DESCRIPTION(Lines&&... lines);
std::string HELP(const std::string& tldr, const std::string& description);
struct ProcessBase {
  explicit ProcessBase(const std::string& id = ""); virtual ~ProcessBase();
  virtual void initialize(); virtual void finalize();
  template <typename Event> size_t eventCount();
  void route(const std::string& name, const std::string& realm, const std::string& help,
      const std::function<Future<http::Response>(const http::Request&, const http::User&)>&);
};
template <typename T> struct Process : virtual ProcessBase { PID<T> self() const; };
UPID spawn(ProcessBase* process);
void terminate(ProcessBase* process);
bool wait(ProcessBase* process);

// The arguments must fit the method, as in a call.
template <typename T, typename R, typename... P, typename... A>
auto dispatch(const PID<T>&, R (T::*method)(P...), A&&... arguments)
    -> decltype((std::declval<T&>().*method)(std::forward<A>(arguments)...));
void dispatch(const UPID&, const std::function<void()>& f);
template <typename T> void delay(const Duration&, const PID<T>&, void (T::*method)());
std::function<void()> defer(const UPID&, const std::function<void()>& f);

namespace metrics {
struct PullGauge { PullGauge(const std::string&, const std::function<Future<double>()>& read); };
struct PushGauge { explicit PushGauge(const std::string&); PushGauge& operator=(double value); };
struct Counter { explicit Counter(const std::string&); Counter& operator++(); };
template <typename T> struct Timer {
  Timer(const std::string&, const Duration& window); void start(); void stop();
};
template <typename T> void add(const T& metric);
template <typename T> void remove(const T& metric);
}
}

namespace mesos {
bool operator==(const FrameworkID&, const FrameworkID&);
bool operator<(const FrameworkID&, const FrameworkID&);
bool operator==(const SlaveID&, const SlaveID&);
struct ResourceConversion;
struct Resources {
  static bool isReserved(const Resource& resource);
  static const std::string& reservationRole(const Resource& resource);
  Resources(); Resources(const Resource& resource);
  const Resource* begin() const; const Resource* end() const;
  size_t size() const; size_t count(const Resource& resource) const;
  void allocate(const std::string& role);
  bool operator==(const Resources&) const; Resources operator-(const Resources&) const;
  Resources& operator+=(const Resources&);
  Try<Resources> apply(const std::vector<ResourceConversion>&) const;
  Try<Resources> apply(const std::vector<Offer::Operation>&) const;
};
struct ResourceConversion { Resources consumed; Resources converted; };
struct UnavailableResources { Resources resources; Unavailability unavailability; };
using ResourceQuantities = std::vector<std::pair<std::string, Value::Scalar>>;
struct Quota { ResourceQuantities guarantees; ResourceQuantities limits; };
struct Attributes {
  Attributes(const google::protobuf::RepeatedPtrField<Attribute>&);
  bool operator!=(const Attributes&) const;
};

namespace allocator {
using InverseOfferStatus = mesos::InverseOfferStatus;
using std::string; using std::vector;
struct Options {
  Duration allocationInterval, recoveryTimeout;
  Option<std::set<string>> fairnessExcludeResourceNames;
  bool filterGpuResources, publishPerFrameworkMetrics;
  Option<DomainInfo> domain;
  Option<vector<ResourceQuantities>> minAllocatableResources;
  size_t maxCompletedFrameworks;
  double agentRecoveryFactor;
};
struct OfferConstraintsFilter {
  OfferConstraintsFilter(); OfferConstraintsFilter(OfferConstraintsFilter&&);
  OfferConstraintsFilter& operator=(OfferConstraintsFilter&&);
  bool isAgentExcluded(const string& role, const SlaveInfo& info) const;
};
struct FrameworkOptions {
  std::set<string> suppressedRoles; OfferConstraintsFilter offerConstraintsFilter;
};
struct Allocator {
  using F = const FrameworkID&; using S = const SlaveID&; using R = const Resources&;
  using Capabilities = vector<SlaveInfo::Capability>;
  using Offers = hashmap<string, hashmap<SlaveID, Resources>>;
  using InverseOffers = hashmap<SlaveID, UnavailableResources>;
  using Statuses = hashmap<SlaveID, hashmap<FrameworkID, InverseOfferStatus>>;

  static Try<Allocator*> create(
      const string& name, const string& roleSorter, const string& frameworkSorter);
  virtual ~Allocator();
  virtual void initialize(const Options&, const std::function<void(F, const Offers&)>&,
      const std::function<void(F, const InverseOffers&)>&) = 0;
  virtual void recover(const int, const hashmap<string, Quota>&) = 0;
  virtual void addFramework(F, const FrameworkInfo&, const hashmap<SlaveID, Resources>&, bool,
      FrameworkOptions&&) = 0;
  virtual void updateFramework(F, const FrameworkInfo&, FrameworkOptions&&) = 0;
  virtual void removeFramework(F) = 0;
  virtual void activateFramework(F) = 0; virtual void deactivateFramework(F) = 0;
  virtual void requestResources(F, const vector<Request>&) = 0;
  virtual void suppressOffers(F, const std::set<string>&) = 0;
  virtual void reviveOffers(F, const std::set<string>&) = 0;
  virtual void addSlave(S, const SlaveInfo&, const Capabilities&, const Option<Unavailability>&, R,
      const hashmap<FrameworkID, Resources>&) = 0;
  virtual void updateSlave(S, const SlaveInfo&, const Option<Resources>&,
      const Option<Capabilities>&) = 0;
  virtual void addResourceProvider(S, R, const hashmap<FrameworkID, Resources>&) = 0;
  virtual void removeSlave(S) = 0;
  virtual void activateSlave(S) = 0; virtual void deactivateSlave(S) = 0;
  virtual void updateWhitelist(const Option<hashset<string>>&) = 0;
  virtual void updateUnavailability(S, const Option<Unavailability>&) = 0;
  virtual void updateInverseOffer(S, F, const Option<UnavailableResources>&,
      const Option<InverseOfferStatus>&, const Option<Filters>&) = 0;
  virtual process::Future<Statuses> getInverseOfferStatuses() = 0;
  virtual void updateAllocation(F, S, R, const vector<ResourceConversion>&) = 0;
  virtual process::Future<Nothing> updateAvailable(S, const vector<Offer::Operation>&) = 0;
  virtual void transitionOfferedToAllocated(S, R) = 0;
  virtual void recoverResources(F, S, R, const Option<Filters>&, bool) = 0;
  virtual void updateQuota(const string&, const Quota&) = 0;
  virtual void updateWeights(const vector<WeightInfo>&) = 0;
  virtual void pause() = 0; virtual void resume() = 0;
};
}

namespace modules {
template <typename T> struct Module {
  Module(const char* moduleApiVersion, const char* mesosVersion, const char* author,
      const char* email, const char* description, bool (*)(), T* (*create)(const Parameters&));
};
}
}
// clang-format on

#endif // __ALLOCATOR_TESTS_MESOS_INTERFACE_HPP__
