#include "session/channel.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <fstream>
#include <sstream>

namespace allocator {
namespace session {
namespace {

bool isUnix(const std::string& target)
{
  return target.compare(0, 5, "unix:") == 0;
}


std::string checkTarget(const std::string& target)
{
  const std::string forms =
      " is not a target; give host:port, [IPv6]:port or unix:/path";

  if (isUnix(target)) {
    const bool absolute = target.size() > 6 && target[5] == '/';
    return absolute ? std::string() : "'" + target + "'" + forms;
  }

  const size_t colon = target.rfind(':');

  if (colon == std::string::npos || colon == 0) {
    return "'" + target + "'" + forms;
  }

  const std::string host = target.substr(0, colon);
  const std::string port = target.substr(colon + 1);

  const bool bracketed = host.front() == '[' && host.back() == ']';
  const bool digits = !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) {
        return c >= '0' && c <= '9';
      });

  if (!digits || (host.find(':') != std::string::npos && !bracketed)) {
    return "'" + target + "'" + forms;
  }

  const int number = std::stoi(port);

  if (number < 1 || number > 65535) {
    return "'" + target + "' has port " + port + "; give one from 1 to 65535";
  }

  return std::string();
}


// Whether the connection stays on this machine.
bool isLocal(const std::string& target)
{
  const std::string host = target.substr(0, target.rfind(':'));
  return isUnix(target) || host == "localhost" || host == "[::1]" ||
      (host.compare(0, 4, "127.") == 0 &&
       host.find_first_not_of("0123456789.") == std::string::npos);
}


bool readFile(
    const char* what,
    const std::string& path,
    std::string* text,
    std::string* error)
{
  if (path.empty()) {
    return true;
  }

  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();

  if (!file || content.str().empty()) {
    *error = std::string("the file ") + what + " '" + path +
        "' cannot be read, or is empty";
    return false;
  }

  *text = content.str();
  return true;
}


std::shared_ptr<grpc::ChannelCredentials> makeCredentials(
    const ChannelOptions& options,
    std::string* error)
{
  const bool paired = options.tlsCert.empty() == options.tlsKey.empty();

  if (!paired) {
    *error = "give both a certificate and its key for TLS, or neither";
    return nullptr;
  }

  if (options.tlsCa.empty()) {
    if (!options.tlsCert.empty() || !options.tlsName.empty()) {
      *error = "TLS needs the file of the authorities that sign the sidecar's"
               " certificate";
      return nullptr;
    }

    return grpc::InsecureChannelCredentials();
  }

#ifdef ALLOCATOR_SESSION_TLS
  if (isUnix(options.target)) {
    *error = "TLS is not for Unix sockets; their permissions guard them";
    return nullptr;
  }

  grpc::SslCredentialsOptions ssl;

  if (!readFile("for TLS", options.tlsCa, &ssl.pem_root_certs, error) ||
      !readFile("for TLS", options.tlsCert, &ssl.pem_cert_chain, error) ||
      !readFile("for TLS", options.tlsKey, &ssl.pem_private_key, error)) {
    return nullptr;
  }

  return grpc::SslCredentials(ssl);
#else
  *error = "this module was built with a gRPC that has no TLS; use a Unix"
           " socket or a loopback address";
  return nullptr;
#endif // ALLOCATOR_SESSION_TLS
}


int milliseconds(Duration duration)
{
  return static_cast<int>(
      std::min<int64_t>(std::max<int64_t>(duration.count(), 1), INT_MAX));
}

} // namespace {


Channels::Channels(const ChannelOptions& _options, std::string* error)
  : options(_options)
{
  *error = checkTarget(options.target);

  if (error->empty() && !options.tokenFile.empty() && options.tlsCa.empty() &&
      !isLocal(options.target)) {
    *error = "a session token would be sent unencrypted to '" + options.target +
        "'; give a Unix socket or a loopback address, or use TLS";
  }

  if (error->empty()) {
    credentials = makeCredentials(options, error);
  }
}


std::string Channels::token(std::string* error) const
{
  // gRPC aborts the process on an invalid header value.
  constexpr size_t LENGTH_MAX = 4096;
  std::string text;

  if (!readFile("with the session token", options.tokenFile, &text, error)) {
    return std::string();
  }

  const char* const blank = " \t\r\n";
  text.erase(text.find_last_not_of(blank) + 1);
  text.erase(0, text.find_first_not_of(blank));
  const bool visible = std::all_of(
      text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });

  if (!options.tokenFile.empty() &&
      (text.empty() || text.size() > LENGTH_MAX || !visible)) {
    *error = "the file with the session token '" + options.tokenFile +
        "' must hold one line of at most " + std::to_string(LENGTH_MAX) +
        " visible ASCII characters";
    return std::string();
  }

  return text;
}


std::shared_ptr<grpc::Channel> Channels::create()
{
  const int interval = milliseconds(options.keepaliveInterval);

  grpc::ChannelArguments arguments;

  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, interval);
  arguments.SetInt(
      GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(options.keepaliveTimeout));

  // Send pings even without calls.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(
      GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, interval);

  arguments.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<size_t>(options.receiveBytesMax, INT_MAX)));
  arguments.SetMaxSendMessageSize(-1);

  // Never use a proxy from the environment. (An old gRPC ignores this argument;
  // `no_proxy` must then name the sidecar's host.)
  arguments.SetInt("grpc.enable_http_proxy", 0);

  // gRPC shares a connection and its reconnection delays between channels with
  // equal arguments, so make them differ.
  arguments.SetInt("allocator.channel", ++made);

  if (!options.tlsName.empty()) {
    arguments.SetString(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, options.tlsName);
  }

  return grpc::CreateCustomChannel(options.target, credentials, arguments);
}

} // namespace session {
} // namespace allocator {
