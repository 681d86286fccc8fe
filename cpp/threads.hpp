// Work in threads that stay.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>
#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace tcboost {

// Threads that wait for the calls of one other. To start and to end a thread took that one 170
// microseconds a call on covertype, a fortieth of a round; to call one that waits takes it 3.
//
// They are never joined, which could block where a process or a library ends: what they share with
// their caller is theirs, too. A forked process has none of them, and begins with others.
class Crew {
  public:
    ~Crew() {
        if (process_ == this_process()) dismiss();
    }

    // That of the calling thread.
    static Crew& mine() {
        thread_local Crew crew;
        return crew;
    }

    // Call work(0), and work(1) to work(others) from threads that are awake before work(0) is over.
    void run(std::size_t others, const std::function<void(std::size_t)>& work) {
        if (process_ != this_process()) {
            shared_ = std::make_shared<Shared>();
            process_ = this_process(), size_ = 0;
        }
        try {
            for (; size_ < others; ++size_)
                std::thread([shared = shared_, number = size_ + 1] {
                    shared->wait_for_work(number);
                }).detach();
        } catch (const std::system_error&) {
            // no more threads to be had: go on with those there are
        }
        const Call call(*shared_, others, work);
        work(0);
    }

  private:
    // How long a thread stays awake for the next call: as long as what a round does between its
    // kernels. To wake took 240 microseconds on a busy machine, to be called when awake 30.
    static constexpr std::chrono::milliseconds patience{2};

    struct Shared {
        std::mutex mutex;
        std::condition_variable wake;
        const std::function<void(std::size_t)>* work = nullptr;
        std::size_t wanted = 0;  // the threads 1 to this
        bool dismissed = false;
        std::atomic<std::size_t> last_call{0}, running{0};

        void wait_for_work(std::size_t number) {
            std::unique_lock<std::mutex> lock(mutex);
            for (std::size_t seen = 0;;) {
                wake.wait(lock, [&] { return dismissed || (number <= wanted && last_call != seen); });
                if (dismissed) return;
                seen = last_call;
                ++running;
                const auto& todo = *work;
                lock.unlock();
                todo(number);
                --running;  // from here on the caller may go on
                const auto until = std::chrono::steady_clock::now() + patience;
                while (last_call == seen && std::chrono::steady_clock::now() < until)
                    std::this_thread::yield();
                lock.lock();
            }
        }
    };

    // From when on there is work, until no thread is at it any more.
    class Call {
      public:
        Call(Shared& shared, std::size_t others, const std::function<void(std::size_t)>& work)
            : shared_(shared) {
            {
                const std::lock_guard<std::mutex> lock(shared.mutex);
                shared.work = &work, shared.wanted = others, ++shared.last_call;
            }
            shared.wake.notify_all();
        }
        ~Call() {
            {
                const std::lock_guard<std::mutex> lock(shared_.mutex);
                shared_.wanted = 0;
            }
            while (shared_.running > 0) std::this_thread::yield();
        }

      private:
        Shared& shared_;
    };

    void dismiss() {
        {
            const std::lock_guard<std::mutex> lock(shared_->mutex);
            shared_->dismissed = true;
        }
        shared_->wake.notify_all();
    }

    static long this_process() {
#if defined(_WIN32)
        return 0;  // where nothing forks
#else
        return long(getpid());
#endif
    }

    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
    long process_ = this_process();
    std::size_t size_ = 0;
};

// In a cache line of its own.
struct alignas(64) Counter {
    std::atomic<std::size_t> value{0};
};

// Call work(0), ..., work(n - 1) from up to n_threads threads, the caller among them. Work may
// also ask for the number of its thread, from 0 on, as in work(i, thread).
//
// Every thread has a part of its own, in order and the same in each call, so that what it needs is
// still near it, and whoever is done goes on with the parts of others. With one queue for all, a
// round of two threads on covertype took a twentieth longer.
template <class Work>
void parallel_for(std::size_t n, int n_threads, Work work) {
    const std::size_t threads = std::min<std::size_t>(n, std::max(n_threads, 1));
    const auto one = [&](std::size_t i, std::size_t thread) {
        if constexpr (std::is_invocable_v<Work, std::size_t, std::size_t>)
            work(i, thread);
        else
            work(i), static_cast<void>(thread);
    };
    if (threads <= 1) {
        for (std::size_t i = 0; i < n; ++i) one(i, 0);
        return;
    }
    std::vector<Counter> next(threads);
    for (std::size_t part = 0; part < threads; ++part) next[part].value = n * part / threads;
    Crew::mine().run(threads - 1, [&](std::size_t thread) {
        for (std::size_t k = 0; k < threads; ++k) {
            const std::size_t part = (thread + k) % threads, end = n * (part + 1) / threads;
            for (std::size_t i = next[part].value++; i < end; i = next[part].value++)
                one(i, thread);
        }
    });
}

}  // namespace tcboost
