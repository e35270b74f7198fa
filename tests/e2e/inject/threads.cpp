// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// Many threads of the C++ library, which check what they get: a pool that hands out work, threads
// that come and go with thread_local objects, exceptions thrown through frames that have something
// to clean up, futures, waits that time out, arithmetic in vector registers.
//
// Says "ready"; SIGTERM ends it, and it says how it went.
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

std::atomic<bool> stopped{false};

// What one kind of thread has done.
struct Task {
	const char *name;
	std::function<bool()> step;
	std::atomic<long> rounds{0};
	std::atomic<long> wrong{0};
	std::thread thread;

	Task(const char *task_name, std::function<bool()> task_step)
		: name(task_name), step(std::move(task_step))
	{
	}

	void run()
	{
		while (!stopped) {
			wrong += !step();
			rounds++;
		}
	}
};

class Pool
{
	std::mutex mutex;
	std::condition_variable changed;
	std::deque<std::packaged_task<long()>> work;
	std::vector<std::thread> threads;
	bool ended = false;

	void serve()
	{
		std::unique_lock<std::mutex> lock(mutex);

		for (;;) {
			changed.wait(lock, [this] { return ended || !work.empty(); });
			if (work.empty())
				return;
			auto task = std::move(work.front());
			work.pop_front();
			lock.unlock();
			task();
			lock.lock();
		}
	}

      public:
	explicit Pool(int count)
	{
		for (int i = 0; i < count; i++)
			threads.emplace_back([this] { serve(); });
	}

	std::future<long> submit(std::function<long()> function)
	{
		std::packaged_task<long()> task(std::move(function));
		auto future = task.get_future();

		{
			std::lock_guard<std::mutex> lock(mutex);
			work.push_back(std::move(task));
		}
		changed.notify_one();
		return future;
	}

	~Pool()
	{
		{
			std::lock_guard<std::mutex> lock(mutex);
			ended = true;
		}
		changed.notify_all();
		for (auto &thread : threads)
			thread.join();
	}
};

bool use_pool(Pool &pool)
{
	std::vector<std::future<long>> futures;
	long sum = 0;

	for (long i = 0; i < 20; i++) {
		futures.push_back(pool.submit([i] {
			if (i % 5 == 4)
				throw std::runtime_error(std::to_string(i));
			return i * i;
		}));
	}
	for (auto &future : futures) {
		try {
			sum += future.get();
		} catch (const std::runtime_error &error) {
			sum += 1000 * std::stol(error.what());
		}
	}
	std::this_thread::sleep_for(std::chrono::milliseconds(1));
	// 0² … 19² without 4², 9², 14², 19²; 4 + 9 + 14 + 19 thousand
	return sum == 2470 - 16 - 81 - 196 - 361 + 46000;
}

struct Counted {
	long &alive;

	explicit Counted(long &count) : alive(count)
	{
		alive++;
	}
	~Counted()
	{
		alive--;
	}
};

long descend(int depth, long &alive)
{
	Counted counted(alive);
	auto memory = std::make_unique<std::string>(depth, 'x');

	if (depth == 0)
		throw std::out_of_range("bottom");
	try {
		return descend(depth - 1, alive) + static_cast<long>(memory->size());
	} catch (const std::length_error &) {
		return -1; // never that
	}
}

bool throw_through_frames()
{
	long alive = 0;

	try {
		descend(20, alive);
	} catch (const std::out_of_range &error) {
		std::this_thread::sleep_for(std::chrono::microseconds(100));
		return alive == 0 && std::string(error.what()) == "bottom";
	}
	return false;
}

std::atomic<long> made{0}, destroyed{0};

struct Local {
	std::vector<int> data = std::vector<int>(100, 7);

	Local()
	{
		made++;
	}
	~Local()
	{
		destroyed += data[99] == 7;
	}
};

thread_local Local local;

bool come_and_go()
{
	std::vector<std::thread> threads;
	std::atomic<long> sum{0};

	for (int i = 0; i < 8; i++)
		threads.emplace_back([&sum] { sum += local.data[50]; });
	for (auto &thread : threads)
		thread.join();
	std::this_thread::sleep_for(std::chrono::milliseconds(1));
	return sum == 56 && made == destroyed;
}

bool time_out()
{
	using clock = std::chrono::steady_clock;
	std::mutex mutex;
	std::condition_variable nobody;
	std::promise<int> never;
	const auto wanted = std::chrono::milliseconds(3);
	auto begin = clock::now();

	{
		std::unique_lock<std::mutex> lock(mutex);
		if (nobody.wait_for(lock, wanted, [] { return false; }))
			return false;
	}
	if (clock::now() - begin < wanted)
		return false;
	begin = clock::now();
	if (never.get_future().wait_for(wanted) != std::future_status::timeout)
		return false;
	return clock::now() - begin >= wanted;
}

bool start_async()
{
	auto future = std::async(std::launch::async, []() -> int {
		std::this_thread::sleep_for(std::chrono::microseconds(200));
		throw 42;
	});

	try {
		return future.get() < 0;
	} catch (int number) {
		return number == 42;
	}
}

// The compiler keeps these sums in vector registers.
bool compute()
{
	static const double first = [] {
		double sum = 0;
		for (int i = 1; i < 4000; i++)
			sum += std::sqrt(i) / (i + 1);
		return sum;
	}();
	double sum = 0;

	for (int i = 1; i < 4000; i++)
		sum += std::sqrt(i) / (i + 1);
	usleep(200);
	return sum == first;
}

struct Baton {
	std::mutex mutex;
	std::condition_variable passed;
	long turn = 0;
};

bool pass(Baton &baton, int mine)
{
	std::unique_lock<std::mutex> lock(baton.mutex);

	baton.passed.wait(lock, [&] { return stopped || baton.turn % 2 == mine; });
	if (baton.turn % 2 != mine)
		return true;
	baton.turn++;
	lock.unlock();
	baton.passed.notify_all();
	usleep(50);
	return true;
}

} // namespace

int main()
{
	Pool pool(12);
	Baton baton;
	std::deque<Task> tasks;
	sigset_t set;
	int signal;

	// Waited for below; threads have the mask of the one that starts them.
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, nullptr);
	for (int i = 0; i < 3; i++) {
		tasks.emplace_back("a pool's futures", [&pool] { return use_pool(pool); });
		tasks.emplace_back("exceptions", throw_through_frames);
		tasks.emplace_back("waits that time out", time_out);
		tasks.emplace_back("std::async", start_async);
		tasks.emplace_back("arithmetic", compute);
	}
	tasks.emplace_back("thread_local", come_and_go);
	tasks.emplace_back("condition variable, 1", [&baton] { return pass(baton, 0); });
	tasks.emplace_back("condition variable, 2", [&baton] { return pass(baton, 1); });
	for (auto &task : tasks)
		task.thread = std::thread([&task] { task.run(); });
	std::puts("ready");
	std::fflush(stdout);
	sigwait(&set, &signal);
	{
		std::lock_guard<std::mutex> lock(baton.mutex);
		stopped = true;
	}
	baton.passed.notify_all();
	for (auto &task : tasks) {
		task.thread.join();
		std::printf("%s - %s: right every time\n# %s: %ld rounds, %ld wrong\n",
			    task.wrong == 0 && task.rounds > 0 ? "ok" : "not ok", task.name,
			    task.name, task.rounds.load(), task.wrong.load());
	}
	std::printf("%s - every thread_local object is destroyed\n# %ld objects\n",
		    made == destroyed ? "ok" : "not ok", made.load());
	return 0;
}
