#ifndef __ALLOCATOR_TESTS_FAKE_SIDECAR_HPP__
#define __ALLOCATOR_TESTS_FAKE_SIDECAR_HPP__

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "allocator/v1/session.grpc.pb.h"

#include "session/clock.hpp"

#include "tests/model_sidecar.hpp"

namespace allocator {
namespace session {

// A real gRPC server on a Unix socket, with one of several behaviours.
class FakeSidecar : private wire::SessionService::Service
{
public:
  enum class Manner
  {
    HONEST, // Behaves like `ModelSidecar`.
    MUTE,   // Reads everything and never answers.
    DEAF,   // Reads nothing after the snapshot.
    CHATTY, // Endlessly sends large unsolicited messages.
    RUDE,   // Ends each stream silently.
  };

  explicit FakeSidecar(
      Manner _manner = Manner::HONEST,
      const std::string& _path = newPath())
    : manner(_manner), path(_path)
  {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server = builder.BuildAndStart();
  }

  ~FakeSidecar() override
  {
    stopping = true;
    server->Shutdown(std::chrono::system_clock::now());
    server->Wait();
    unlink(path.c_str());
  }

  static std::string newPath()
  {
    static std::atomic<int> made(0);
    return "/tmp/fake-sidecar-" + std::to_string(getpid()) + "-" +
        std::to_string(++made);
  }

  std::string target() const { return "unix:" + path; }

  std::string fault()
  {
    std::lock_guard<std::mutex> lock(mutex);
    return fault_;
  }

  const Manner manner;
  const std::string path;

  // `likeThis`: initial state of the sidecar in each stream. `spoil`: if set,
  // changes the answers to a request before they are written. Set both before a
  // stream begins.
  ModelSidecar likeThis;
  std::function<
      void(const wire::SessionRequest&, std::vector<wire::SessionResponse>*)>
      spoil;

  // If not empty, the server refuses sessions without this token.
  std::string token;

  std::atomic<int> sessions{0};
  std::atomic<int> left{0}; // Modules that ended their session.
  std::atomic<int> written{0};

private:
  using Call =
      grpc::ServerReaderWriter<wire::SessionResponse, wire::SessionRequest>;

  grpc::Status Session(grpc::ServerContext* context, Call* call) override
  {
    const auto given = context->client_metadata().find("authorization");

    if (!token.empty() &&
        (given == context->client_metadata().end() ||
         given->second != "Bearer " + token)) {
      return grpc::Status(
          grpc::StatusCode::UNAUTHENTICATED, "this is no token for a session");
    }

    ++sessions;

    if (manner == Manner::RUDE) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "no");
    }

    ModelSidecar model = likeThis;
    wire::SessionRequest request;

    while (call->Read(&request)) {
      std::vector<wire::SessionResponse> answers = model.take(request);

      if (spoil) {
        spoil(request, &answers);
      }

      for (const wire::SessionResponse& answer : answers) {
        if (manner != Manner::MUTE || answer.has_welcome()) {
          call->Write(answer);
          ++written;
        }
      }

      if (manner == Manner::CHATTY) {
        chat(context, call);
      }

      if (manner == Manner::DEAF && model.streaming) {
        waitForEnd(context);
      }
    }

    left += context->IsCancelled() ? 0 : 1;

    std::lock_guard<std::mutex> lock(mutex);
    fault_ += model.fault;
    return grpc::Status::OK;
  }

  void chat(grpc::ServerContext* context, Call* call)
  {
    wire::SessionResponse response;
    response.mutable_welcome()->set_sidecar_id(std::string(100 << 10, 'x'));

    while (!stopping && !context->IsCancelled() && call->Write(response)) {
      ++written;
    }
  }

  void waitForEnd(grpc::ServerContext* context)
  {
    while (!stopping && !context->IsCancelled()) {
      std::this_thread::sleep_for(Duration(5));
    }
  }

  std::atomic<bool> stopping{false};
  std::unique_ptr<grpc::Server> server;
  std::mutex mutex;
  std::string fault_;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_FAKE_SIDECAR_HPP__
